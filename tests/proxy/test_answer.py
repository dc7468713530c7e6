"""What answers of status 200 really say, in each API's words."""

import json

import pytest

from proxy.answer import ABORTED, GOOD, Verdict, first_statement, good_part
from proxy.dialects import DIALECTS
from proxy.endpoint import Endpoint

CHAT, RESPONSES, MESSAGES = (DIALECTS[each] for each in (Endpoint.CHAT, Endpoint.RESPONSES, Endpoint.MESSAGES))


def choices(finish: str | None) -> bytes:
    return json.dumps({"choices": [{"index": 0, "text": "", "finish_reason": finish}]}).encode()


def response(status: str, tokens: int) -> dict:
    return {"object": "response", "status": status, "output": [], "usage": {"output_tokens": tokens, "x": 1}}


def message(**more: object) -> dict:
    return {"type": "message", "content": [{"type": "text", "text": ""}], **more, "usage": {"output_tokens": 1}}


def compact(document: dict) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def named(name: str, **document: object) -> bytes:
    return f"event: {name}\ndata: ".encode() + compact({"type": name, **document}) + b"\n\n"


@pytest.mark.parametrize("finish", [None, "stop", "length"])
def test_an_ordinary_answer_is_good(finish):
    assert CHAT.judge(choices(finish)) == GOOD


def test_an_aborted_answer_is_told_from_a_text_about_abort():
    assert CHAT.judge(choices("abort")) == ABORTED
    assert CHAT.judge(b'{"choices":[{"text":"\\"abort\\"","finish_reason":"stop"}]}') == GOOD
    assert CHAT.judge(b'{"choices":[{"text":"abort","finish_reason":"stop"}]}') == GOOD


@pytest.mark.parametrize(("code", "status"), [(500, 500), (400, 400), (None, 502), ("x", 502), (200, 502)])
def test_an_error_has_the_status_that_it_names(code, status):
    judgement = CHAT.judge(json.dumps({"error": {"message": "m", "code": code}}).encode())
    assert (judgement.verdict, judgement.status) == (Verdict.ERROR, status)
    assert json.loads(judgement.body)["error"]["message"] == "m"


@pytest.mark.parametrize("dialect", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("body", [b"", b"not json", b'"error"', b'{"error":null}', b'"cancelled"', b"{}"])
def test_what_is_no_answer_object_is_not_judged(dialect, body):
    assert dialect.judge(body) == GOOD


@pytest.mark.parametrize(
    ("status", "tokens", "judgement"),
    [
        ("completed", 5, GOOD),
        ("incomplete", 5, GOOD),
        ("completed", 0, ABORTED),
        ("cancelled", 5, ABORTED),
        ("failed", 5, ABORTED),
    ],
)
def test_a_response_without_tokens_or_success_is_aborted(status, tokens, judgement):
    document = response(status, tokens)
    assert RESPONSES.judge(compact(document)) == judgement
    assert first_statement(named("response.completed", response=document), RESPONSES) == judgement


def test_a_response_that_waits_in_the_background_is_good():
    assert RESPONSES.judge(compact({"object": "response", "status": "queued", "usage": None})) == GOOD


def test_a_message_without_a_reason_to_stop_is_aborted():
    assert MESSAGES.judge(compact(message(stop_reason="end_turn"))) == GOOD
    assert MESSAGES.judge(compact(message())) == ABORTED


@pytest.mark.parametrize(
    ("reason", "tokens", "judgement"), [("end_turn", 1, GOOD), ("end_turn", 0, ABORTED), (None, 1, ABORTED)]
)
def test_a_streamed_message_without_reason_or_tokens_is_aborted(reason, tokens, judgement):
    start = named("message_start", message=message(stop_reason=None))
    end = named("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": tokens})
    assert first_statement(start + end, MESSAGES) == judgement


def test_an_error_in_a_streamed_message_is_the_engines():
    error = {"type": "error", "error": {"type": "internal_error", "message": "m"}}
    judgement = first_statement(named("message_start") + named("error", **error), MESSAGES)
    assert (judgement.verdict, judgement.status, json.loads(judgement.body)) == (Verdict.ERROR, 500, error)


ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'


@pytest.mark.parametrize(
    ("dialect", "head", "judgement"),
    [
        (CHAT, b"", None),
        (CHAT, b"data: {}", None),
        (CHAT, b"data: {}\n", None),
        (CHAT, b"data: {}\n\n", GOOD),
        (CHAT, b"data:{}\r\n\r\ndata: 2\r\n\r\n", GOOD),
        (CHAT, b": ping\n\n", None),
        (CHAT, ROLE, None),
        (CHAT, ROLE + b"data: [DONE]\n\n", ABORTED),
        (CHAT, b'data: {"choices":[],"usage":{}}\n\ndata: [DONE]\n\n', ABORTED),
        (CHAT, b": ping\n\nevent: x\ndata: a\ndata: b\n\n", GOOD),
        (RESPONSES, named("response.created") + named("response.in_progress"), None),
        (RESPONSES, named("response.created") + named("response.output_item.added"), GOOD),
        (MESSAGES, named("message_start") + named("ping"), None),
        (MESSAGES, named("message_start") + named("content_block_start"), GOOD),
    ],
)
def test_the_first_event_that_says_something_is_judged(dialect, head, judgement):
    assert first_statement(head, dialect) == judgement


def delta(finish: str | None) -> bytes:
    return b"data: " + compact({"choices": [{"delta": {"content": "abort"}, "finish_reason": finish}]}) + b"\n\n"


def test_the_events_before_an_abort_are_good():
    assert good_part(delta(None) + delta("abort") + b"data: [DONE]\n\n", CHAT) == (delta(None), ABORTED)
    assert good_part(delta(None) + delta("stop"), CHAT) == (delta(None) + delta("stop"), GOOD)


def test_the_event_that_tells_of_an_error_is_passed_on_and_nothing_after_it():
    error = b'data: {"error":{"code":500}}\n\n'
    part, judgement = good_part(delta(None) + error + b"data: [DONE]\n\n", CHAT)
    assert (part, judgement.verdict) == (delta(None) + error, Verdict.ERROR)
