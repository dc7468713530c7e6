"""How the server reads HTTP: uvicorn's way, with a limit on heads and with refusals that OpenAI's clients can read."""

import asyncio

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
        super().data_received(data)
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
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_LIMIT:
            self._too_large = True
            raise ValueError("the head is too large")  # the parser stops, and send_400_response is called
        super().on_headers_complete()
        self.cycle.transport = _HeadWithBody(self.cycle, self.loop)

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
