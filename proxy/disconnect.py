"""Work that ends when the client leaves. The web framework does not stop a handler that waits for an engine."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

from proxy.errors import ClientGone, ShuttingDown

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def unless_gone(work: Awaitable[T], receive: Receive) -> T:
    """The result of the work; raises :class:`ClientGone` after the work was cancelled because the client left.

    Raises :class:`ShuttingDown` when the calling task is cancelled: only a server that ends does that.

    ``receive`` is ASGI's, after the request's body was read. The work runs in the task that calls, so that none of its
    steps costs a switch between tasks. Work that ends at the same moment wins: its result may hold something open.
    """
    working = asyncio.current_task()
    assert working is not None
    cancelled_before = working.cancelling()
    ended = cancelled = False

    def leave(_: asyncio.Task[None]) -> None:
        nonlocal cancelled
        if not ended:  # this call may have been on its way when the work ended
            cancelled = working.cancel()

    leaving = asyncio.create_task(_disconnected(receive), name="disconnect")
    leaving.add_done_callback(leave)
    try:
        return await work
    except asyncio.CancelledError as exc:
        if cancelled and working.cancelling() == cancelled_before + 1:  # more: somebody else stops the task, too
            raise ClientGone("The client closed the connection.") from exc
        raise ShuttingDown("The proxy is shutting down; this request was broken off.") from exc
    finally:
        ended = True
        leaving.cancel()
        if cancelled:
            working.uncancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
