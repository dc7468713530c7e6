"""What answers of status 200 really say."""

import json

import pytest

from proxy.answer import Verdict, at_event_end, first_statement, judge


def choices(finish: str | None) -> bytes:
    return json.dumps({"choices": [{"index": 0, "text": "", "finish_reason": finish}]}).encode()


@pytest.mark.parametrize("finish", [None, "stop", "length"])
def test_an_ordinary_answer_is_good(finish):
    assert judge(choices(finish)).verdict is Verdict.GOOD


def test_an_aborted_answer_is_told_from_a_text_about_abort():
    assert judge(choices("abort")).verdict is Verdict.ABORTED
    assert judge(b'{"choices":[{"text":"\\"abort\\"","finish_reason":"stop"}]}').verdict is Verdict.GOOD
    assert judge(b'{"choices":[{"text":"abort","finish_reason":"stop"}]}').verdict is Verdict.GOOD


@pytest.mark.parametrize(("code", "status"), [(500, 500), (400, 400), (None, 502), ("x", 502), (200, 502)])
def test_an_error_has_the_status_that_it_names(code, status):
    judgement = judge(json.dumps({"error": {"message": "m", "code": code}}).encode())
    assert (judgement.verdict, judgement.status) == (Verdict.ERROR, status)
    assert json.loads(judgement.body)["error"]["message"] == "m"


@pytest.mark.parametrize("body", [b"", b"not json", b'"error"', b'{"error":null}'])
def test_what_is_no_answer_object_is_not_judged(body):
    assert judge(body).verdict is Verdict.GOOD


@pytest.mark.parametrize(
    ("head", "data"),
    [
        (b"", None),
        (b"data: {}", None),
        (b"data: {}\n", None),
        (b"data: {}\n\n", b"{}"),
        (b"data:{}\r\n\r\ndata: 2\r\n\r\n", b"{}"),
        (b": ping\n\n", None),
        (b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n', None),
        (b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\ndata: [DONE]\n\n', b"[DONE]"),
        (b'data: {"choices":[],"usage":{}}\n\ndata: [DONE]\n\n', b"[DONE]"),
        (b": ping\n\nevent: x\ndata: a\ndata: b\n\n", b"a\nb"),
    ],
)
def test_the_first_event_that_says_something_is_found(head, data):
    assert first_statement(head) == data


def test_a_stream_that_ends_before_it_says_anything_is_aborted():
    assert judge(b"[DONE]").verdict is Verdict.ABORTED


def test_an_event_may_follow_a_complete_one_only():
    assert at_event_end(b"")
    assert at_event_end(b"data: 1\n\n")
    assert at_event_end(b"data: 1\r\n\r\n")
    assert not at_event_end(b"data: 1\n")
