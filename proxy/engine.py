"""The only file that knows the HTTP client: opens streamed requests to instances, and names failures in our terms."""

from collections.abc import AsyncIterator, Callable

from proxy.errors import EngineCut, EngineFailure, EngineTimeout, EngineUnreachable
from proxy.headers import RawHeaders, value_of
from proxy.settings import Leg
from proxy.topology import Instance
from proxy.upload import Upload
from proxy.wire import errors as wire
from proxy.wire.client import Answer, Client
from proxy.wire.client import Pending as WirePending

TRANSLATION: dict[type[wire.WireError], tuple[type[EngineFailure], str]] = {
    wire.BadAddress: (EngineUnreachable, "has an address that is not HTTP"),
    wire.Unsendable: (EngineCut, "was sent what is no HTTP"),
    wire.Unreachable: (EngineUnreachable, "cannot be reached"),
    wire.ConnectTimeout: (EngineTimeout, "took too long to connect"),
    wire.SendTimeout: (EngineTimeout, "took too long to take the request"),
    wire.AnswerTimeout: (EngineTimeout, "took too long to answer"),
    wire.Broken: (EngineCut, "closed the connection before the answer was complete"),
    wire.Malformed: (EngineCut, "answered what is no HTTP"),
}


class Upstream:
    """An answer whose status and headers have come and whose body has not."""

    def __init__(self, instance: Instance, answer: Answer) -> None:
        self.instance = instance
        self.status = answer.status
        self.headers: RawHeaders = answer.headers
        self._answer = answer

    @property
    def is_event_stream(self) -> bool:
        """Whether the body is server-sent events."""
        return (value_of(self.headers, b"content-type") or "").lower().startswith("text/event-stream")

    def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, not decoded; raises :class:`EngineFailure`. To be iterated once."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._answer.chunk()
        except wire.WireError as exc:
            raise _translated(self.instance, exc) from exc
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def read(self) -> bytes:
        """The whole body; raises :class:`EngineFailure`."""
        return b"".join([chunk async for chunk in self])

    async def aclose(self) -> None:
        """Gives the connection back, or closes it when the body was not read to its end; never fails."""
        self._answer.close()


class Pending:
    """An answer whose caller was cancelled before its head came. Whoever has it closes it, or what comes of it."""

    def __init__(self, instance: Instance, pending: WirePending) -> None:
        self.instance = instance
        self._pending = pending

    async def answer(self) -> Upstream:
        """Wait on; raises :class:`EngineFailure`."""
        try:
            return Upstream(self.instance, await self._pending.answer())
        except wire.WireError as exc:
            raise _translated(self.instance, exc) from exc

    async def aclose(self) -> None:
        """Closes the connection; never fails."""
        self._pending.close()


class EngineClient:
    """Connections to all instances."""

    def __init__(self, key: str | None = None) -> None:
        """``key`` is sent with every request."""
        self._client = Client()
        self._own_headers: RawHeaders = [] if key is None else [(b"authorization", b"Bearer " + key.encode())]

    async def open(
        self,
        instance: Instance,
        method: str,
        path: str,
        headers: RawHeaders,
        body: bytes | Upload | None,
        limits: Leg,
        *,
        sent: Callable[[], None] | None = None,
        left: Callable[[Pending], None] | None = None,
    ) -> Upstream:
        """Send a request and wait for status and headers; raises :class:`EngineFailure`. The caller closes the answer.

        Also raises what an upload's parts do.

        The limit ``first_byte`` runs from here to the first byte of the body: an engine that streams sends its headers
        before it has computed anything.

        ``sent`` is called when the request is about to be sent; ``left`` takes the answer when the caller is cancelled
        while it waits for one.
        """
        wire_left = None if left is None else lambda pending: left(Pending(instance, pending))
        try:
            answer = await self._client.open(
                instance.url,
                method,
                path,
                [*headers, *self._own_headers],
                body,
                connect=limits.connect,
                first_byte=limits.first_byte,
                idle=limits.idle,
                sent=sent,
                left=wire_left,
            )
        except wire.WireError as exc:
            raise _translated(instance, exc) from exc
        return Upstream(instance, answer)

    async def get(self, instance: Instance, path: str, limits: Leg | None = None) -> tuple[int, bytes]:
        """Status and whole body of what an instance tells of itself; raises :class:`EngineFailure`."""
        answer = await self.open(instance, "GET", path, [], None, limits or Leg())
        try:
            return answer.status, await answer.read()
        finally:
            await answer.aclose()

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._client.aclose()


def _translated(instance: Instance, error: wire.WireError) -> EngineFailure:
    failure, detail = TRANSLATION[type(error)]
    return failure(instance.name, detail)
