"""Two legs of one request that run at the same time, of which the second waits for the first."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def side_by_side(
    first: Coroutine[Any, Any, object],
    second: Coroutine[Any, Any, T],
    discard: Callable[[T], Awaitable[None]],
) -> tuple[T, "asyncio.Task[object]"]:
    """The result of the second, and the first, which may still run: whoever has it ends it.

    When either fails, or the calling task is cancelled, the other one is cancelled at once. When both have failed, it
    is the first one's failure that is raised: it may have been the reason of the other. A result that nobody gets is
    discarded.
    """
    leading = asyncio.create_task(first, name="first leg")
    answering = asyncio.create_task(second, name="second leg")
    try:
        await asyncio.wait((leading, answering), return_when=asyncio.FIRST_COMPLETED)
        if leading.done() and not _is_well(answering):
            leading.result()
        return await answering, leading
    except BaseException:
        leading.cancel()
        answering.cancel()
        await asyncio.gather(leading, answering, return_exceptions=True)
        if _is_well(answering):
            await discard(answering.result())
        raise


async def ended(task: "asyncio.Task[object]") -> None:
    """Returns when the task has ended, which it is made to; what it says then does not matter any more."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _is_well(task: "asyncio.Task[T]") -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
