"""Usage counts what prefill had cached, as one engine would, and never the KV that was handed over."""

import json

import httpx
import pytest

from tests.real.conftest import MODEL, Pair
from tests.real.generated_requests import BLOCK

PROMPT = "This License applies to any program or other work which contains a notice. " * 20
MESSAGES = [{"role": "user", "content": PROMPT}]
COUNTS = (("input", "prompt"), ("output", "completion"))
ROUTES = {
    "/v1/completions": {"prompt": PROMPT, "max_tokens": 5},
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 5},
    "/v1/responses": {"input": PROMPT, "max_output_tokens": 5},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 5},
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("route", "body"), ROUTES.items(), ids=ROUTES)
def test_the_second_time_a_prompt_comes_its_blocks_are_cached(route: str, body: dict, stream: bool, pair: Pair):
    salt = f"usage {route.replace('/', ' ')} {stream}"
    body = body | {"model": MODEL, "temperature": 0, "stream": stream}
    if stream and "completions" in route:
        body["stream_options"] = {"include_usage": True}
    through, alone = (
        [counted(httpx.post(url + route, json=body | {"cache_salt": salted}, trust_env=False)) for _ in range(2)]
        for url, salted in ((pair.proxy, salt), (pair.decode, salt + " alone"))
    )
    assert through == alone
    (prompt, first, generated), (_, second, _) = through
    assert (first, second, generated) == (0, prompt // BLOCK * BLOCK, 5)
    assert second > BLOCK


def counted(answer: httpx.Response) -> tuple[int, int, int]:
    """Tokens of the prompt, those of them that were cached, and generated tokens."""
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith(("data: {", "{"))]
    documents = [document.get("response", document) for document in map(json.loads, lines)]
    usage = [document["usage"] for document in documents if document.get("usage")][-1]
    if "cache_read_input_tokens" in usage:  # this API counts as input what was neither cached nor written to the cache
        cached = usage["cache_read_input_tokens"]
        return usage["input_tokens"] + cached + usage["cache_creation_input_tokens"], cached, usage["output_tokens"]
    prompt, generated = (usage.get(f"{new}_tokens", usage.get(f"{old}_tokens")) for new, old in COUNTS)
    assert usage["total_tokens"] == prompt + generated
    details = usage.get("prompt_tokens_details") or usage["input_tokens_details"]
    return prompt, details["cached_tokens"], generated
