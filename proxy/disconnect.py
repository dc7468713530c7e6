"""Work that ends when the client leaves. The web framework does not stop a handler that waits for an engine."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeVar

from proxy.errors import ClientGone

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def unless_gone(work: Coroutine[Any, Any, T], receive: Receive) -> T:
    """The result of the work; raises :class:`ClientGone` after the work was cancelled because the client left.

    ``receive`` is ASGI's, after the request's body was read. Work that ends at the same moment wins, since its result
    may hold something open.
    """
    working = asyncio.create_task(work, name="request")
    leaving = asyncio.create_task(_disconnected(receive), name="disconnect")
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait((working, leaving))
    if working.cancelled():
        raise ClientGone("The client closed the connection.")
    return working.result()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
