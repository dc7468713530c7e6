"""How the server reads HTTP: uvicorn's way, with a limit on heads and with refusals that OpenAI's clients can read."""

import asyncio

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from proxy.errors import error_body

HEAD_LIMIT = 64 * 1024
"""Bytes of a request's path and headers together, as much as engines take."""
_UNFINISHED_LIMIT = 4 * HEAD_LIMIT
"""Bytes of a head without an end. More than the other: most that are too large are read whole before the answer."""


class _HeadWithBody(asyncio.Transport):
    """Writes the head of an answer together with the beginning of its body, if that comes in the same moment.

    The server writes them one after the other, each in a packet of its own: a tenth of the work of a small answer.
    """

    def __init__(self, cycle: RequestResponseCycle, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._cycle = cycle
        self._transport = cycle.transport
        self._loop = loop
        self._head = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """The first time it is the head."""
        if not self._head:
            self._head = bytes(data)
            self._loop.call_soon(self._write)
            return
        self._write(data)

    def is_closing(self) -> bool:
        """Whether the connection ends."""
        return self._transport.is_closing()

    def close(self) -> None:
        """End the connection when all is written."""
        self._write()
        self._transport.close()

    def _write(self, more: bytes | bytearray | memoryview = b"") -> None:
        head, self._head = self._head, b""
        if head:
            self._cycle.transport = self._transport  # its work is done
            self._transport.write(head + more)


class Protocol(HttpToolsProtocol):
    """One connection of a client."""

    _in_head = False
    _head_size = 0
    _too_large = False
    _declining = False
    _answering: RequestResponseCycle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left, which concerns the request that is answered, too, when others have come after it."""
        answering = self._answering
        if answering is not None and not answering.response_complete:
            answering.disconnected = True
            answering.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        """Bytes of requests have come."""
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._declining = False
            head = self._head_without_upgrade()
            self.parser = HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the one before
            self.data_received(head + data[upgrade.args[0] :])
            return
        except HttpParserError:
            self.send_400_response("")
            return
        if self._in_head and not self.transport.is_closing():
            self._head_size += len(data)
            if self._head_size > _UNFINISHED_LIMIT:
                self._too_large = True
                self.send_400_response("")

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = True
        self._head_size = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is complete."""
        self._in_head = False
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._declining = True
            return
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_LIMIT:
            self._too_large = True
            raise ValueError("the head is too large")  # the parser stops, and send_400_response is called
        super().on_headers_complete()
        self.cycle.transport = _HeadWithBody(self.cycle, self.loop)

    def on_message_complete(self) -> None:
        """A request is complete, unless it was only the head of one that asks for another protocol."""
        if not self._declining:
            super().on_message_complete()

    def _head_without_upgrade(self) -> bytes:
        """The request again without its wish for another protocol, since the parser does not read on after that.

        Java's clients wish for HTTP/2 with every first request, also with one that has a body.
        """
        start = b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        lines = [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([start, *lines, b"", b""])

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, and end the connection."""
        status, text, name = 400, "What came is no HTTP request.", "BadRequestError"
        if self._too_large:
            status, name = 431, "RequestHeaderFieldsTooLarge"
            text = f"The request's path and headers are larger than {HEAD_LIMIT} bytes together."
        body = error_body(text, name, status)
        self.transport.write(
            STATUS_LINE[status]
            + b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
            + body
        )
        self.transport.close()
