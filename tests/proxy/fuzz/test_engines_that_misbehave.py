"""Whatever engines answer: no status 200 hides an error, nothing hangs, nothing stays counted as running."""

import itertools
import json
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proxy.fuzz.rig import Rig, Script, good_prefill, json_bytes

TOKEN = json_bytes({"choices": [{"index": 0, "text": ' an abort of "error"', "finish_reason": None}]})
LAST = json_bytes({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
ABORT = json_bytes({"choices": [{"index": 0, "text": "", "finish_reason": "abort"}]})
ERROR = json_bytes({"error": {"message": "no", "type": "InternalServerError", "param": None, "code": 500}})
ROLE = json_bytes({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
WHOLE = json_bytes({"choices": [{"index": 0, "text": "all of it", "finish_reason": "stop"}]})
NO_CHOICES = b'{"choices":7}'
FORMS = {
    "token": b"data: " + TOKEN + b"\n\n",
    "last": b"data: " + LAST + b"\n\n",
    "role": b"data: " + ROLE + b"\n\n",
    "abort": b"data: " + ABORT + b"\n\n",
    "error": b"data: " + ERROR + b"\n\n",
    "comment": b": ping\n\n",
    "windows": b"data:" + TOKEN + b"\r\n\r\n",
    "done": b"data: [DONE]\n\n",
    "junk": b"\x00\xff\n\ndata",
}
bad = {"abort", "error"}


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with Rig() as running:
        yield running


def request(stream: bool) -> bytes:
    body = json_bytes({"model": "m", "prompt": "one two", "stream": stream})
    head = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


def framed(body: bytes, kind: bytes, framing: str) -> tuple[bytes, bool]:
    """An answer of status 200, and whether its framing shows that it is complete."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\n"
    if framing == "chunked":
        return head + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body), True
    if framing == "chunked without an end":
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return head + b"transfer-encoding: chunked\r\n\r\n" + chunk, False
    if framing == "length":
        return head + b"content-length: %d\r\n\r\n" % len(body) + body, True
    if framing == "too long":
        return head + b"content-length: %d\r\n\r\n" % (len(body) + 7) + body, False
    return head + b"\r\n" + body, True


framings = st.sampled_from(["chunked", "chunked without an end", "length", "too long", "until it closes"])
cuts = st.lists(st.integers(0, 2000), max_size=6)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The same bytes in pieces."""
    ends = sorted({place % len(data) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(ends)]


def taken_apart(answer: bytes) -> tuple[int, bytes]:
    """Status and body; a body that is cut off is told by a status of 0."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(re.match(rb"HTTP/1.1 (\d{3}) ", head)[1])
    if b"transfer-encoding: chunked" not in head.lower():
        length = int(re.search(rb"content-length: (\d+)", head.lower())[1])
        return (status if len(body) == length else 0), body
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        if not int(size, 16):
            return status, whole
        whole, body = whole + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return 0, whole


def error_of(body: bytes) -> dict | None:
    """The error in a body, or in the last event of a stream."""
    text = body.rpartition(b"data:")[2] if b"data:" in body else body
    try:
        return json.loads(text).get("error")
    except ValueError:
        return None


@settings(max_examples=150, deadline=None, derandomize=True)
@given(forms=st.lists(st.sampled_from(sorted(FORMS)), max_size=6), framing=framings, places=cuts)
def test_a_stream_that_ends_well_ended_well_at_the_engine(rig, forms, framing, places):
    data, complete = framed(b"".join(FORMS[form] for form in forms), b"text/event-stream", framing)
    rig.prefill, rig.decode = good_prefill(), Script(cut(data, places))
    status, body = taken_apart(rig.ask(request(stream=True)))
    good = complete and not bad.intersection(forms) and forms[-1:] == ["done"] and {"token", "last"} & set(forms)
    if status == 200 and body.endswith(b"data: [DONE]\n\n"):
        assert good or (complete and forms[-1:] == ["done"] and "windows" in forms and not bad.intersection(forms))
        assert error_of(body) is None
    elif status == 200:
        assert error_of(body) is not None
    else:
        assert status >= 500
        assert error_of(body) is not None
        assert not good
    assert rig.in_flight() == 0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    body=st.sampled_from([WHOLE, ABORT, ERROR, NO_CHOICES, b"", b"null", b"[]", b'{"error":"text"}', WHOLE[:30]]),
    framing=framings,
    places=cuts,
)
def test_an_answer_of_status_200_is_the_engines_own_and_complete(rig, body, framing, places):
    data, complete = framed(body, b"application/json", framing)
    rig.prefill, rig.decode = good_prefill(), Script(cut(data, places))
    status, got = taken_apart(rig.ask(request(stream=False)))
    if status == 200:
        assert (got, complete) == (body, True)
        assert body in (WHOLE, NO_CHOICES)
    else:
        assert status >= 500
        assert error_of(got) is not None
    assert rig.in_flight() == 0


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    noise=st.one_of(st.binary(max_size=200), st.binary(max_size=60).map(lambda b: b"HTTP/1.1 200 OK\r\n" + b)),
    at_prefill=st.booleans(),
    stream=st.booleans(),
    close=st.booleans(),
)
def test_noise_is_an_error_and_never_an_answer(rig, noise, at_prefill, stream, close):
    script = Script([noise] if noise else [], close)
    rig.prefill, rig.decode = (script, Script()) if at_prefill else (good_prefill(), script)
    status, body = taken_apart(rig.ask(request(stream)))
    assert status in (502, 504)
    assert error_of(body) is not None
    assert rig.in_flight() == 0


@settings(max_examples=60, deadline=None, derandomize=True)
@given(at=st.integers(0, 400), change=st.integers(0, 255), drop=st.integers(0, 30), stream=st.booleans())
def test_a_damaged_answer_of_prefill_hands_nothing_over_or_the_parameters_it_names(rig, at, change, drop, stream):
    _, body = good_prefill().pieces
    damaged = bytearray(body)
    damaged[at % len(body)] = change
    del damaged[len(body) - drop :]
    framing = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(damaged)
    rig.prefill = Script([framing, bytes(damaged)])
    rig.decode = Script([framed(FORMS["last"] + FORMS["done"], b"text/event-stream", "chunked")[0]])
    if not stream:
        rig.decode = Script([framed(WHOLE, b"application/json", "length")[0]])
    status, answer = taken_apart(rig.ask(request(stream)))
    assert status in (200, 502)
    assert (error_of(answer) is None) == (status == 200)
    assert rig.in_flight() == 0
