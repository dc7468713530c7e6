"""Headers and ids."""

from proxy.headers import from_engine, request_id, to_engine, value_of

UNIQUE = "0123456789abcdef" * 2


def test_a_client_id_is_kept_and_made_unique_inside():
    identity = request_id("same-1", UNIQUE)
    assert identity.public == "same-1"
    assert identity.internal == "same-1-01234567"


def test_a_huge_or_hostile_id_is_bounded_and_harmless():
    identity = request_id("a\r\nX-Evil: 1 é" + "b" * 65536, UNIQUE)
    assert identity.public.startswith("aX-Evil:1b")
    assert len(identity.public) == 64
    assert len(identity.internal) == 73


def test_without_a_usable_id_there_is_a_new_one():
    assert request_id(None, UNIQUE).public == request_id("\x00é", UNIQUE).internal == UNIQUE


def test_hop_by_hop_headers_stay_and_end_to_end_headers_pass():
    sent = to_engine(
        [
            (b"host", b"public.example"),
            (b"connection", b"close, X-Private"),
            (b"x-private", b"1"),
            (b"te", b"trailers"),
            (b"transfer-encoding", b"chunked"),
            (b"expect", b"100-continue"),
            (b"content-length", b"9"),
            (b"content-type", b"text/plain"),
            (b"accept-encoding", b"gzip"),
            (b"authorization", b"Bearer k"),
            (b"traceparent", b"00-1-2-01"),
            (b"x-tenant", b"a"),
            (b"x-control", b"a\x01b"),
        ],
        "id-1",
    )
    assert sent == [
        (b"content-type", b"text/plain"),
        (b"authorization", b"Bearer k"),
        (b"traceparent", b"00-1-2-01"),
        (b"x-tenant", b"a"),
        (b"accept-encoding", b"identity"),
        (b"x-request-id", b"id-1"),
    ]


def test_the_engines_own_headers_pass_and_those_of_its_connection_stay():
    passed = from_engine(
        [(b"Server", b"uvicorn"), (b"Content-Length", b"2"), (b"Keep-Alive", b"5"), (b"Retry-After", b"3")]
    )
    assert passed == [(b"retry-after", b"3")]


def test_a_header_is_found_by_its_lower_case_name():
    assert value_of([(b"X-A", b"1"), (b"x-a", b"2")], b"x-a") == "1"
    assert value_of([], b"x-a") is None
