"""Whatever clients send: an answer of HTTP, an error in OpenAI's shape, and nothing left running."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proxy.fuzz.rig import Rig, Script, good_prefill, json_bytes
from tests.proxy.fuzz.test_engines_that_misbehave import WHOLE, cut, framed, taken_apart

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(
    ["model", "prompt", "stream", "n", "echo", "max_tokens", "kv_transfer_params", "min_tokens", "x"]
)
bodies = st.one_of(
    st.binary(max_size=200),
    plain.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(keys, plain, max_size=6).map(lambda value: json.dumps(value).encode()),
    st.dictionaries(keys, plain, max_size=6).map(lambda value: json.dumps(value, indent=1).encode("utf-16")),
    st.integers(1, 100_000).map(lambda depth: b'{"prompt":' * 1 + b"[" * depth),
)
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
values = st.binary(max_size=60).map(lambda value: value.translate(None, b"\r\n\x00"))
ROUTES = st.sampled_from(
    ["/v1/completions", "/v1/chat/completions", "/v1/completions?x=%00", "/tokenize", "//", "/v1/%zz"]
)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with Rig() as running:
        running.prefill = good_prefill()
        running.decode = Script([framed(WHOLE, b"application/json", "length")[0]])
        yield running


@settings(max_examples=200, deadline=None, derandomize=True)
@given(route=ROUTES, body=bodies, headers=st.lists(st.tuples(names, values), max_size=5))
def test_any_body_and_headers_get_an_answer_and_leave_nothing_running(rig, route, body, headers):
    lines = [name.encode() + b": " + value for name, value in headers if name not in ("host", "connection")]
    framing = [b"POST %b HTTP/1.1" % route.encode(), b"host: x", b"connection: close"]
    head = b"\r\n".join([*framing, b"content-length: %d" % len(body), *lines])
    answer = rig.ask(head + b"\r\n\r\n" + body)
    status, got = taken_apart(answer)
    assert 200 <= status < 600
    if b"x-duet-decode" not in answer.partition(b"\r\n\r\n")[0].lower() and status >= 400 and got.startswith(b"{"):
        assert set(json.loads(got)["error"]) == {"message", "type", "param", "code"}
    assert rig.in_flight() == 0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(noise=st.binary(min_size=1, max_size=300))
def test_bytes_that_are_no_http_get_a_refusal_and_leave_nothing_running(rig, noise):
    answer = rig.ask(noise + b"\r\n\r\n" + b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 2")) or not answer
    assert rig.in_flight() == 0


@settings(max_examples=40, deadline=None, derandomize=True)
@given(places=st.lists(st.integers(0, 400), max_size=5), chunked=st.booleans())
def test_a_body_in_any_pieces_is_one_body(rig, places, chunked):
    body = json_bytes({"model": "m", "prompt": "one two three", "max_tokens": 3})
    head = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    if chunked:
        pieces = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in cut(body, places))
        answer = rig.ask(head + b"transfer-encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")
    else:
        answer = rig.ask(head + b"content-length: %d\r\n\r\n" % len(body) + body)
    assert taken_apart(answer) == (200, WHOLE)
