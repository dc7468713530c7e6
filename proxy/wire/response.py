"""Cuts the bytes of a connection into answers. Knows no sockets and no time."""

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from proxy.headers import RawHeaders
from proxy.wire.errors import Malformed

HEAD_LIMIT = 64 * 1024
"""Bytes of all header names and values together."""
HEADER_COUNT_LIMIT = 256
_OVERHEAD_LIMIT = 2 * HEAD_LIMIT
"""Bytes in a row without any of a body: of a head, trailers or chunk extensions that never end."""
_WITHOUT_BODY = (204, 304)


class ResponseReader:
    """The answer that is being read on one connection; the ``on_`` methods are the parser's callbacks."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self.begin(to_head=False)

    def begin(self, *, to_head: bool) -> None:
        """Expect an answer, to a ``HEAD`` request or to another."""
        self._to_head = to_head
        self._until_close = False
        self._head_size = 0
        self._overhead = 0
        self._body: list[bytes] = []
        self.size = 0
        """Bytes of the body that have come and were not taken."""
        self.status = 0
        self.headers: RawHeaders = []
        self.head_complete = False
        """Whether status and headers have come. Interim answers (1xx) are skipped."""
        self.complete = False
        """Whether the whole answer has come."""
        self.keep_alive = False
        """Whether the connection can take another request when the answer is complete."""

    def feed(self, data: bytes) -> None:
        """Take what was received; raises :class:`Malformed`, with all that was right before it still to be taken."""
        before = self.size
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as exc:
            if not self.complete:
                raise Malformed(str(exc.__context__ or exc)) from exc
            self.keep_alive = False  # the answer is whole; what follows it was never asked for
            return
        if self.size != before:
            self._overhead = 0
            return
        self._overhead += len(data)
        if self._overhead > _OVERHEAD_LIMIT and not self.complete:
            raise Malformed("too much without a body")

    def feed_eof(self) -> None:
        """The server has closed its side: the end of an answer without a length."""
        if self._until_close:
            self.complete = True

    def take(self) -> bytes:
        """What has come of the body since the last time, in one piece."""
        body = self._body
        data = body[0] if len(body) == 1 else b"".join(body)
        body.clear()
        self.size = 0
        return data

    def on_message_begin(self) -> None:
        """Refuses an answer to no request."""
        if self.complete:
            raise ValueError("more than one answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keeps a header, with its name in lower case; trailers are dropped."""
        if self.head_complete:
            return
        self._head_size += len(name) + len(value)
        if self._head_size > HEAD_LIMIT or len(self.headers) >= HEADER_COUNT_LIMIT:
            raise ValueError("too many headers")
        self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Decides how the body ends."""
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            self.headers.clear()
            return
        if not 200 <= status < 600:
            raise ValueError(f"status {status} was not asked for")
        self.status = status
        self.head_complete = True
        if self._to_head or status in _WITHOUT_BODY:
            # The parser cannot be told to expect no body after a Content-Length, so it is not used again.
            self.complete = True
            return
        framing = {name: value for name, value in self.headers if name in (b"content-length", b"transfer-encoding")}
        coding = framing.get(b"transfer-encoding")
        chunked = coding is not None and coding.lower().endswith(b"chunked")
        self._until_close = not chunked and (coding is not None or b"content-length" not in framing)
        self.keep_alive = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        """Keeps a piece of the body."""
        if self.complete or not self.head_complete:
            raise ValueError("a body where none may be")
        self._body.append(data)
        self.size += len(data)

    def on_message_complete(self) -> None:
        """Ends the answer, unless it was an interim one."""
        if self.head_complete:
            self.complete = True
