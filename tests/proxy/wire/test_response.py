"""Answers are read the same however their bytes are cut up, and nonsense is told from answers."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.wire.errors import Malformed
from proxy.wire.response import HEAD_LIMIT, HEADER_COUNT_LIMIT, ResponseReader
from tests.proxy.wire.conftest import chunk, chunked, ok

OK = b"HTTP/1.1 200 OK\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nall of it"


def read(*pieces: bytes, to_head: bool = False) -> ResponseReader:
    """A reader that was fed the pieces."""
    reader = ResponseReader()
    reader.begin(to_head=to_head)
    for piece in pieces:
        reader.feed(piece)
    return reader


def outcome(reader: ResponseReader) -> tuple:
    return reader.status, reader.headers, reader.head_complete, reader.complete, reader.keep_alive, reader.take()


WHOLE = {
    "a length": (ok(b"body"), 200, b"body", True),
    "a length of nothing": (ok(b""), 200, b"", True),
    "chunks": (chunked(b"bo", b"dy", b""), 200, b"body", True),
    "chunks with extensions": (chunked() + b"4;a=b\r\nbody\r\n0\r\n\r\n", 200, b"body", True),
    "chunks and trailers": (chunked(b"body") + b"0\r\nx: y\r\n\r\n", 200, b"body", True),
    "no body by status": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", False),
    "no body by status but a length": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", 304, b"", False),
    "a close": (ok(b"body", b"connection: close"), 200, b"body", False),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 4\r\n\r\nbody", 200, b"body", False),
    "no reason": (b"HTTP/1.1 200\r\ncontent-length: 4\r\n\r\nbody", 200, b"body", True),
    "after interim answers": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + ok(b"body"),
        200,
        b"body",
        True,
    ),
    "an error": (b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nbody", 503, b"body", True),
}


@pytest.mark.parametrize(("raw", "status", "body", "keep_alive"), WHOLE.values(), ids=WHOLE)
def test_a_body_ends_where_its_framing_says(raw, status, body, keep_alive):
    reader = read(raw)
    assert reader.complete
    assert (reader.status, reader.keep_alive, reader.take()) == (status, keep_alive, body)
    assert b"link" not in dict(reader.headers)


@pytest.mark.parametrize("raw", [case[0] for case in WHOLE.values()], ids=WHOLE)
def test_the_pieces_do_not_matter(raw):
    expected = outcome(read(raw))
    assert outcome(read(*(raw[i : i + 1] for i in range(len(raw))))) == expected
    for i in range(1, len(raw)):
        assert outcome(read(raw[:i], raw[i:])) == expected


def test_an_answer_without_length_ends_with_the_connection():
    reader = read(UNTIL_CLOSE)
    assert not reader.complete
    reader.feed_eof()
    assert reader.complete
    assert reader.take() == b"all of it"


@pytest.mark.parametrize("raw", [ok(b"body")[:-1], chunked(b"body"), OK, chunked(b"body") + b"0\r\n"])
def test_an_answer_with_a_length_does_not(raw):
    reader = read(raw)
    reader.feed_eof()
    assert not reader.complete


def test_an_answer_to_head_has_no_body():
    reader = read(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", to_head=True)
    assert reader.complete
    assert not reader.keep_alive


def test_headers_are_kept_in_order_with_names_in_lower_case():
    reader = read(OK + b"X-A: 1 \r\nx-empty:\r\nx-a:\t2\r\nX-B: \xff\r\ncontent-length: 0\r\n\r\n")
    assert reader.headers == [
        (b"x-a", b"1"),
        (b"x-empty", b""),
        (b"x-a", b"2"),
        (b"x-b", b"\xff"),
        (b"content-length", b"0"),
    ]


@pytest.mark.parametrize("extra", [b"x", ok(), b"HTTP/1.1 408 Request Timeout\r\n\r\n", b"\x00"])
def test_what_follows_an_answer_spoils_the_connection_and_not_the_answer(extra):
    for pieces in ((ok(b"body") + extra,), (ok(b"body"), extra)):
        reader = read(*pieces)
        assert reader.complete
        assert not reader.keep_alive
        assert (reader.status, reader.take()) == (200, b"body")


NONSENSE = {
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n",
    "a status that means nothing": b"HTTP/1.1 600 Odd\r\ncontent-length: 0\r\n\r\n",
    "a status under 100": b"HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n",
    "an upgrade": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "an upgrade without a name": b"HTTP/1.1 101 Switching\r\n\r\n",
    "an interim answer with a body": b"HTTP/1.1 103 Hints\r\ncontent-length: 1\r\n\r\nx",
    "two framings": OK + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
    "two lengths": OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\n",
    "a negative length": OK + b"content-length: -1\r\n\r\n",
    "a huge length": OK + b"content-length: 99999999999999999999\r\n\r\n",
    "a chunk size that is none": chunked() + b"zz\r\n",
    "a chunk longer than it says": chunked() + b"1\r\nab\r\n",
    "a header with a NUL": OK + b"a: \x00\r\n\r\n",
    "a header without a colon": OK + b"a\r\n\r\n",
    "a folded header": OK + b"a: b\r\n c\r\ncontent-length: 0\r\n\r\n",
    "headers too large": OK + b"a: " + b"b" * HEAD_LIMIT + b"\r\ncontent-length: 0\r\n\r\n",
    "too many headers": OK + b"a: b\r\n" * HEADER_COUNT_LIMIT + b"content-length: 0\r\n\r\n",
    "headers without an end": OK + b"a: " + b"b" * HEAD_LIMIT * 3,
    "a reason without an end": b"HTTP/1.1 200 " + b"b" * HEAD_LIMIT * 3,
    "trailers without an end": chunked(b"x") + b"0\r\n" + b"a: b\r\n" * HEAD_LIMIT,
    "interim answers without an end": b"HTTP/1.1 102 Processing\r\n\r\n" * HEAD_LIMIT,
}


@pytest.mark.parametrize("raw", NONSENSE.values(), ids=NONSENSE)
@pytest.mark.parametrize("piece", [1000, 100_000])
def test_nonsense_is_no_answer(raw, piece):
    with pytest.raises(Malformed):
        read(*(raw[i : i + piece] for i in range(0, len(raw), piece)))


def test_a_long_answer_may_have_much_around_its_chunks():
    size = b"1;" + b"x" * 1000 + b"\r\n"
    reader = read(chunked(), *[size, b"y\r\n"] * 300, b"0\r\n\r\n")
    assert reader.complete
    assert reader.take() == b"y" * 300


def test_what_came_before_the_nonsense_can_be_taken():
    reader = ResponseReader()
    with pytest.raises(Malformed):
        reader.feed(chunked(b"body") + b"zz")
    assert reader.take() == b"body"
    assert not reader.complete


token = st.from_regex(rb"x-[a-z]{1,8}", fullmatch=True)
value = st.from_regex(rb"([!-~]([ -~]{0,20}[!-~])?)?", fullmatch=True)


@st.composite
def answers(draw: st.DrawFn) -> tuple[int, list[tuple[bytes, bytes]], bytes, bytes]:
    """Status, headers, body and all of it in bytes."""
    status = draw(st.sampled_from([200, 201, 400, 404, 500, 503]))
    headers = draw(st.lists(st.tuples(token, value), max_size=5))
    chunks = draw(st.lists(st.binary(min_size=1, max_size=40), max_size=5))
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" * draw(st.integers(0, 2))
    body = b"".join(chunks)
    if draw(st.booleans()):
        headers.append((b"transfer-encoding", b"chunked"))
        trailer = draw(st.sampled_from([b"", b"x-sum: 1\r\n"]))
        framed = b"".join(map(chunk, chunks)) + b"0\r\n" + trailer + b"\r\n"
    else:
        headers.append((b"content-length", b"%d" % len(body)))
        framed = body
    head = b"".join(b"%b: %b\r\n" % header for header in headers)
    return status, headers, body, interim + b"HTTP/1.1 %d Why\r\n%b\r\n%b" % (status, head, framed)


def cut(raw: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(raw) + 1) for place in places), len(raw)]
    return [raw[a:b] for a, b in pairwise(edges)]


places = st.lists(st.integers(0, 10_000), max_size=8)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(answers(), min_size=1, max_size=3), places)
def test_any_answers_one_after_the_other_in_any_pieces(several, where):
    reader = ResponseReader()
    for status, headers, body, raw in several:
        reader.begin(to_head=False)
        for piece in cut(raw, where):
            reader.feed(piece)
        assert (reader.status, reader.headers, reader.complete, reader.keep_alive) == (status, headers, True, True)
        assert reader.take() == body


@settings(max_examples=150, deadline=None, derandomize=True)
@given(answers(), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4), places)
def test_a_damaged_answer_is_read_or_malformed_and_the_pieces_do_not_matter(answer, damages, where):
    damaged = bytearray(answer[-1])
    for place, byte in damages:
        damaged[place % len(damaged)] = byte

    def result(pieces: list[bytes]) -> object:
        reader = ResponseReader()
        try:
            for piece in pieces:
                reader.feed(piece)
        except Malformed:
            return "malformed"
        return outcome(reader)

    assert result(cut(bytes(damaged), where)) == result([bytes(damaged)])
