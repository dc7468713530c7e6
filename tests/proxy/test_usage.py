"""The tokens that an answer tells of itself."""

import pytest

from proxy.usage import Usage, usage_of


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        (b'{"usage":{"prompt_tokens":3,"total_tokens":8,"completion_tokens":5},"metrics":null}', (3, 5)),
        (b'{"usage": {"input_tokens": 3, "output_tokens": 5}}', (3, 5)),
        (
            b'data: {"usage":null}\n\ndata: {"usage":{"prompt_tokens":3,"completion_tokens":5}}\n\ndata: [DONE]\n\n',
            (3, 5),
        ),
        (b'{"usage":{"prompt_tokens":3,"completion_tokens":5}} {"usage":null}', None),
        (rb'{"text":"\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}"}', None),
        (b'{"usage":{"prompt_tokens":-3,"completion_tokens":5}}', None),
        (b'{"usage":{"prompt_tokens":true,"completion_tokens":5}}', None),
        (b'{"usage":{"prompt_tokens":3', None),
        (b'{"usage":[]}', None),
        (b'{"usage":' + b"[" * 4000, None),
        (b'{"usage":\xff', None),
        (b"", None),
    ],
)
def test_only_what_is_well_told_counts(text, usage):
    assert usage_of(text) == (None if usage is None else Usage(*usage))
