"""How long a prompt is, and which prompts begin alike."""

import json

import pytest

from proxy.completion import Completion, parse
from proxy.endpoint import Endpoint
from proxy.hint import Hint
from proxy.prompt import hint_of, session_of

SYSTEM = {"role": "system", "content": "Answer in few words. " * 40}
QUESTION = {"role": "user", "content": "What is the capital of France? " * 20}
ANSWER = {"role": "assistant", "content": "Paris."}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 5000}}


def hint(chat: bool, **document: object) -> Hint:
    endpoint = Endpoint.CHAT if chat else Endpoint.COMPLETIONS
    return hint_of(parse(json.dumps({"model": "fake", **document}).encode(), endpoint), session=None, hashed=True)


def common(one: Hint, other: Hint) -> int:
    """How many blocks two prompts have in common at their beginning."""
    pairs = list(zip(one.blocks, other.blocks, strict=False))
    return next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))


def test_a_turn_extends_the_one_before():
    first = hint(True, messages=[SYSTEM, QUESTION])
    second = hint(True, messages=[SYSTEM, QUESTION, ANSWER, QUESTION])
    assert len(first.blocks) == common(first, second) == 5
    assert len(second.blocks) > len(first.blocks)


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "a-lora-adapter"},
        {"cache_salt": "secret"},
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"messages": [{**SYSTEM, "content": "!" + SYSTEM["content"]}, QUESTION]},
        {"messages": [{**SYSTEM, "role": "user"}, QUESTION]},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_changes_the_kv_cache_changes_every_block(changed):
    plain = {"messages": [SYSTEM, QUESTION]}
    assert common(hint(True, **plain), hint(True, **(plain | changed))) == 0


def test_what_does_not_change_the_kv_cache_changes_no_block():
    one = hint(True, messages=[SYSTEM, QUESTION], temperature=0.7, stream=True, tools=None)
    assert one == hint(True, stream=False, messages=[{"content": SYSTEM["content"], "role": "system"}, QUESTION])


def test_text_in_parts_is_text():
    parts = [{"type": "text", "text": SYSTEM["content"]}]
    assert hint(True, messages=[{**SYSTEM, "content": parts}]) == hint(True, messages=[SYSTEM])


def test_calls_of_tools_count():
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "x" * 400}}]}
    with_call = hint(True, messages=[SYSTEM, call])
    assert with_call.tokens > hint(True, messages=[SYSTEM]).tokens + 100
    other = {**call, "tool_calls": [{"function": {"name": "f", "arguments": "y" * 400}}]}
    assert common(with_call, hint(True, messages=[SYSTEM, other])) == 3


def test_an_image_is_about_a_thousand_tokens_whatever_its_bytes():
    assert hint(True, messages=[{"role": "user", "content": [IMAGE]}]).tokens == pytest.approx(1000, abs=10)


def test_different_images_differ_and_the_text_before_them_is_still_shared():
    def with_image(url: str) -> Hint:
        image = {"type": "image_url", "image_url": {"url": url}}
        return hint(True, messages=[SYSTEM, {"role": "user", "content": [image, {"type": "text", "text": "What?"}]}])

    assert common(with_image("http://x/1.png"), with_image("http://x/1.png")) == 18
    assert common(with_image("http://x/1.png"), with_image("http://x/2.png")) == 3


def test_token_ids_are_counted_exactly():
    assert hint(False, prompt=list(range(1000))).tokens == 1000
    assert hint(False, prompt=[list(range(1000))]).tokens == 1000
    assert len(hint(False, prompt=list(range(1000))).blocks) == 15


def test_token_ids_extend_each_other():
    assert common(hint(False, prompt=list(range(1000))), hint(False, prompt=list(range(2000)))) == 15


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("word", 1), ("a word", 2), ("日本語", 3)])
def test_text_is_four_bytes_a_token(text, tokens):
    assert hint(False, prompt=text).tokens == hint(False, prompt=[text]).tokens == tokens


def test_a_prompt_of_many_megabytes_is_counted_but_not_hashed_to_its_end():
    long = hint(False, prompt="x" * 4_000_000)
    assert (long.tokens, len(long.blocks)) == (1_000_000, 4096)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"prompt": None},
        {"prompt": 7},
        {"prompt": {"a": 1}},
        {"prompt": []},
        {"prompt": [-1, 2**40]},
        {"prompt": [1, "two"]},
        {"prompt": ["several", "prompts"]},
        {"prompt": [[1, 2], [3]]},
        {"prompt": [[]]},
        {"prompt": "\ud800"},
        {"messages": None},
        {"messages": ["no message", {"role": 3, "content": 4}, {"content": [5, None, {"text": 6}, {}]}, {}]},
        {"messages": [{"role": "user", "content": "\ud800", "name": "\ud800"}], "tools": 3, "model": ["x"]},
    ],
    ids=str,
)
@pytest.mark.parametrize("chat", [False, True])
def test_what_the_engine_will_refuse_has_a_hint_too(chat, document):
    assert hint(chat, **document).tokens >= 0


def test_what_is_nested_too_deeply_to_be_written_down_has_a_hint_too():
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    assert hint_of(Completion({"tools": nested}, b"", Endpoint.CHAT), session=None, hashed=True).tokens == 0


@pytest.mark.parametrize(
    ("header", "body", "session"),
    [
        ("mine", {"session_id": "body"}, "mine"),
        (None, {"session_id": "body", "prompt_cache_key": "key"}, "body"),
        ("", {"prompt_cache_key": "key"}, "key"),
        (None, {"user": "an application"}, None),
        (None, {"session_id": 7}, None),
    ],
)
def test_a_session_is_named_by_the_header_or_the_body(header, body, session):
    assert session_of(parse(json.dumps(body).encode(), Endpoint.CHAT), header) == session
