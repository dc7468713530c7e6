"""Records become tokens as the engine makes them of requests; the assistant's own are known."""

import json

import pytest

from launcher.quantize.worker.duet_quantizing.record import read
from launcher.quantize.worker.duet_quantizing.rendering import Renderer, RenderError
from tests.launcher.quantize.worker.records import chat
from tests.launcher.quantize.worker.tokenizer import Words


def record(told):
    return read(1, json.dumps(told).encode())


def spans(told, template: str | None = "there is one", cut: int | None = None) -> list[str]:
    """Texts that are scored."""
    words = Words(template)
    renderer = Renderer(words)
    ids = renderer.tokens(record(told))[:cut]
    return [words.text(ids[start:end]) for start, end in renderer.scored(record(told), ids)]


def text(told, template: str | None = "there is one", *, prompt: bool = False) -> str:
    words = Words(template)
    renderer = Renderer(words)
    return words.text(renderer.prompt(record(told)) if prompt else renderer.tokens(record(told)))


TWO = {
    "messages": [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "One is one."},
        {"role": "user", "content": "Two?"},
        {"role": "assistant", "content": "Two it is."},
    ]
}


def test_a_chat_is_rendered_by_the_models_template():
    assert text(chat("Who?", "Me.")) == "<user>Who?<end>\n<assistant>Me.<end>\n"


def test_a_chat_without_an_answer_waits_for_one():
    assert text(chat("Who?")) == "<user>Who?<end>\n<assistant>"


def test_the_answers_of_a_chat_are_scored_to_their_end_and_nothing_between():
    assert spans(TWO) == ["One is one.<end>", "Two it is.<end>"]


def test_of_a_record_that_was_cut_only_what_is_left_is_scored():
    assert spans(TWO, cut=14) == ["One is"]
    assert spans(TWO, cut=10) == []


def test_of_a_chat_without_answers_everything_is_scored():
    assert spans(chat("Who are you?")) == ["Who are you?<end>\n<assistant>"]


def test_of_plain_text_all_but_its_first_token_is_scored():
    assert spans({"text": "It was a dark night"}) == ["It was a dark night"]


def test_of_a_completion_only_that_is_scored():
    assert spans({"prompt": "It was a", "completion": " dark night"}) == [" dark night"]


def test_a_prompt_without_completion_is_plain_text():
    assert spans({"prompt": "It was a"}) == ["It was a"]


def test_without_a_template_a_chat_is_plain_text_and_its_answers_are_scored():
    assert text(chat("Who?", "Me."), None) == "<bos>user: Who?\nassistant: Me.\n"
    assert spans(chat("Who?", "Me."), None) == [" Me.\n"]


def test_the_prompt_is_what_was_asked_before_the_last_answer():
    assert text(TWO, prompt=True).endswith("One is one.<end>\n<user>Two?<end>\n<assistant>")
    assert text({"prompt": "It was", "completion": " dark"}, prompt=True) == "<bos>It was"
    assert text({"text": "It was"}, prompt=True) == "<bos>It was"


def test_parts_of_text_are_joined_and_arguments_of_tools_become_objects():
    call = {"function": {"name": "f", "arguments": '{"a": 1}'}}
    told = record(
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Who "}, {"type": "text", "text": "is it?"}]},
                {"role": "assistant", "content": None, "tool_calls": [call]},
            ],
            "tools": [{"type": "function"}],
        }
    )
    assert told.messages[0]["content"] == "Who is it?"
    assert told.messages[1]["tool_calls"] == [{"function": {"name": "f", "arguments": {"a": 1}}}]
    assert told.messages[1]["content"] == ""
    assert told.tools == ({"type": "function"},)


def test_an_image_cannot_be_calibrated_with():
    with pytest.raises(ValueError, match="message 1 has a part that is no text"):
        record(chat([{"type": "image_url", "image_url": {"url": "x"}}]))  # type: ignore[arg-type]


def test_what_the_template_refuses_is_an_error_of_that_record():
    with pytest.raises(RenderError, match=r"the chat template refuses it \(ValueError\)"):
        Renderer(Words()).tokens(record({"messages": [{"role": "critic", "content": "Bad."}]}))
