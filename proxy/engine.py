"""The only file that knows the HTTP client: opens streamed requests to instances, and names failures in our terms."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress

import httpx

from proxy.config import Timeouts
from proxy.errors import EngineCut, EngineFailure, EngineTimeout, EngineUnreachable
from proxy.headers import RawHeaders, value_of
from proxy.topology import Instance

# Shorter than the five seconds after which an engine closes an idle connection, so that it is never used as it closes.
_KEEPALIVE_EXPIRY = 4.0

TRANSLATION: dict[type[Exception], tuple[type[EngineFailure], str]] = {
    httpx.ConnectError: (EngineUnreachable, "cannot be reached"),
    httpx.UnsupportedProtocol: (EngineUnreachable, "has an address that is not HTTP"),
    httpx.ConnectTimeout: (EngineTimeout, "took too long to connect"),
    httpx.PoolTimeout: (EngineTimeout, "took too long to connect"),
    httpx.ReadTimeout: (EngineTimeout, "took too long to answer"),
    httpx.WriteTimeout: (EngineTimeout, "took too long to take the request"),
    TimeoutError: (EngineTimeout, "took too long to answer"),
    httpx.ReadError: (EngineCut, "closed the connection before the answer was complete"),
    httpx.RemoteProtocolError: (EngineCut, "closed the connection before the answer was complete"),
    httpx.WriteError: (EngineCut, "closed the connection before it had the request"),
    httpx.CloseError: (EngineCut, "failed to close the connection"),
    httpx.LocalProtocolError: (EngineCut, "was sent what is no HTTP"),
}


class Upstream:
    """An answer whose status and headers have come and whose body has not."""

    def __init__(self, instance: Instance, response: httpx.Response, first_byte_by: float, idle: float) -> None:
        self.instance = instance
        self.status = response.status_code
        self.headers: RawHeaders = [(name.lower(), value) for name, value in response.headers.raw]
        self._response = response
        self._first_byte_by = first_byte_by
        self._idle = idle

    @property
    def is_event_stream(self) -> bool:
        """Whether the body is server-sent events."""
        return (value_of(self.headers, b"content-type") or "").lower().startswith("text/event-stream")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body's bytes as they come, not decoded; raises :class:`EngineFailure`. To be iterated once."""
        parts = self._response.aiter_raw()
        deadline = self._first_byte_by
        while True:
            with _translated(self.instance):
                async with asyncio.timeout_at(deadline):
                    part = await anext(parts, None)
            if part is None:
                return
            yield part
            deadline = asyncio.get_running_loop().time() + self._idle

    async def read(self) -> bytes:
        """The whole body; raises :class:`EngineFailure`."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def aclose(self) -> None:
        """Gives the connection back, or closes it when the body was not read to its end; never fails."""
        with suppress(*TRANSLATION):
            await self._response.aclose()


class EngineClient:
    """Connections to all instances."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        # The bare transport: no redirects, cookies, proxies from the environment, default headers or decoding.
        self._transport = httpx.AsyncHTTPTransport(
            trust_env=False,
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=None, keepalive_expiry=_KEEPALIVE_EXPIRY
            ),
        )

    async def open(
        self, instance: Instance, method: str, path: str, headers: RawHeaders, body: bytes | None = None
    ) -> Upstream:
        """Send a request and wait for status and headers; raises :class:`EngineFailure`. The caller closes the answer.

        The limit ``first_byte`` runs from here to the first byte of the body: an engine that streams sends its headers
        before it has computed anything.
        """
        limits = httpx.Timeout(None, connect=self._timeouts.connect, write=self._timeouts.first_byte)
        request = httpx.Request(
            method, instance.url + path, headers=headers, content=body, extensions={"timeout": limits.as_dict()}
        )
        deadline = asyncio.get_running_loop().time() + self._timeouts.first_byte
        with _translated(instance):
            async with asyncio.timeout_at(deadline):
                response = await self._transport.handle_async_request(request)
        return Upstream(instance, response, deadline, self._timeouts.idle)

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._transport.aclose()


@contextmanager
def _translated(instance: Instance) -> Iterator[None]:
    try:
        yield
    except tuple(TRANSLATION) as exc:
        failure, detail = next(TRANSLATION[cause] for cause in type(exc).__mro__ if cause in TRANSLATION)
        raise failure(instance.name, detail) from exc
