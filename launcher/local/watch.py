"""Keeps one instance running after the start, and restarts it when that is asked for."""

import asyncio

from launcher.errors import LauncherError
from launcher.local.runner import Runner

ASKED = "restarted by `launcher restart`"


class Watch:
    """Of one instance."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._orders: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()

    async def until_failed(self, error: LauncherError | None = None) -> LauncherError:
        """Until it is in a crash loop; the last error."""
        while True:
            supervising = asyncio.create_task(self.runner.supervise(error), name=f"supervise {self.runner.recipe.name}")
            ordered = asyncio.create_task(self._orders.get(), name=f"orders for {self.runner.recipe.name}")
            try:
                await asyncio.wait({supervising, ordered}, return_when=asyncio.FIRST_COMPLETED)
                if not ordered.done():
                    return supervising.result()
            finally:
                await cancel(supervising, ordered)
            error = await self._follow(ordered.result())

    async def until_revived(self) -> LauncherError | None:
        """It has failed: until somebody restarts it; what went wrong with that."""
        return await self._follow(await self._orders.get())

    async def restart(self) -> None:
        """Have it restarted; raises what went wrong, a :class:`LauncherError`."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._orders.put_nowait(done)
        await done

    async def _follow(self, order: "asyncio.Future[None]") -> LauncherError | None:
        error = await self.runner.restart(ASKED)
        if not order.done():  # whoever asked may have left
            order.set_result(None) if error is None else order.set_exception(error)
        return error


async def cancel(*tasks: "asyncio.Task[object]") -> None:
    """End tasks, whatever they were about to return."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
