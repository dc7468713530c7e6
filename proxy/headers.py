"""Decision: which headers pass, and the request's two ids.

A header travels end to end unless HTTP says that it concerns one connection only, or the proxy has to set it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

RawHeaders = list[tuple[bytes, bytes]]
"""Names in lower case and values, as ASGI has them."""

_HOP_BY_HOP = {
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
# Set anew for the engine. Bodies are looked into, so the engine is asked not to compress them.
_NOT_FROM_CLIENT = {
    b"accept-encoding",
    b"content-encoding",
    b"content-length",
    b"expect",
    b"host",
    b"x-request-id",
}
# Set anew for the engine, whatever the body.
_OF_THE_CONNECTION = {b"content-length", b"expect", b"host", b"x-request-id"}
# Set anew for the client.
_NOT_FROM_ENGINE = {b"content-length", b"date", b"server", b"x-request-id"}
_OURS = b"x-duet-"  # asks something of the proxy
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9._:-]+")
_ID_LIMIT = 64


@dataclass(frozen=True, slots=True)
class RequestId:
    """Two names of one request."""

    public: str
    """Answered to the client: its own id, made harmless, or a new one."""
    internal: str
    """Sent on both legs and logged; unique even when clients repeat theirs, at most 73 characters."""


def request_id(given: str | None, unique: str) -> RequestId:
    """From the client's ``X-Request-Id``, if any, and 32 fresh hexadecimal digits."""
    harmless = _NOT_IN_ID.sub("", given or "")[:_ID_LIMIT]
    if not harmless:
        return RequestId(public=unique, internal=unique)
    return RequestId(public=harmless, internal=f"{harmless}-{unique[:8]}")


def to_engine(client: Iterable[tuple[bytes, bytes]], internal_id: str) -> RawHeaders:
    """The headers of either leg.

    The content type stays the client's. Engines refuse others than JSON's, since a browser lets any page send those.
    """
    kept = [
        (name, value)
        for name, value in _end_to_end(client)
        if name not in _NOT_FROM_CLIENT and not name.startswith(_OURS) and not _CONTROL.search(value)
    ]
    return [
        *kept,
        (b"accept-encoding", b"identity"),
        (b"x-request-id", internal_id.encode()),
    ]


def to_engine_unchanged(client: Iterable[tuple[bytes, bytes]], internal_id: str) -> RawHeaders:
    """The headers of a request whose body is passed on as it is, whatever its type and encoding."""
    kept = [
        (name, value)
        for name, value in _end_to_end(client)
        if name not in _OF_THE_CONNECTION and not name.startswith(_OURS) and not _CONTROL.search(value)
    ]
    return [*kept, (b"x-request-id", internal_id.encode())]


def with_headers(headers: RawHeaders, new: RawHeaders) -> RawHeaders:
    """The headers with others in place of those of the same names."""
    replaced = {name for name, _ in new}
    return [*(header for header in headers if header[0] not in replaced), *new]


def from_engine(engine: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """The engine's headers that go to the client."""
    return [(name, value) for name, value in _end_to_end(engine) if name not in _NOT_FROM_ENGINE]


def value_of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """The first value of a header, by its name in lower case."""
    for key, value in headers:
        if key == name or key.lower() == name:
            return value.decode("latin-1")
    return None


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    kept, connection = [], b""
    for name, value in headers:
        name = name.lower()
        if name == b"connection":
            connection += b"," + value
        elif name not in _HOP_BY_HOP:
            kept.append((name, value))
    if not connection:
        return kept
    named = {token.strip().lower() for token in connection.split(b",")}
    return [header for header in kept if header[0] not in named]
