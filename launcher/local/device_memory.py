"""Waits, before an engine is started again, until the driver has given back what it had."""

import asyncio
from collections.abc import Callable, Collection, Mapping

from launcher.inventory import DeviceUse
from launcher.local.given_back import left_by, rising

Look = Callable[[Collection[str]], Mapping[str, DeviceUse]]
"""What is taken on these devices now; nothing of a device that cannot be looked at."""


class DeviceMemory:
    """``look`` asks the driver, ``warn`` tells people. It waits for ``looks`` looks, ``pause`` seconds apart."""

    def __init__(self, look: Look, warn: Callable[[str], None], *, pause: float = 0.5, looks: int = 60) -> None:
        self._look = look
        self._warn = warn
        self._pause = pause
        self._looks = looks

    async def given_back(self, name: str, devices: Collection[str], family: Collection[int]) -> None:
        """Until no process of the ``family`` of the engine ``name`` is on its devices and free memory stands still.

        At least two looks. When they do not end, that is told, and the engine may try with what there is: nobody is
        killed for it.
        """
        if not devices:
            return
        before: Mapping[str, DeviceUse] = {}
        left: dict[str, list[int]] = {}
        for _ in range(self._looks):
            uses = await asyncio.to_thread(self._look, devices)
            left = left_by(family, uses)
            if before.keys() == uses.keys() and not left and not rising(before, uses):
                return
            before = uses
            await asyncio.sleep(self._pause)
        self._warn(f"{name} is started although {_why(left)} after {self._looks * self._pause:.0f} s")


def _why(left: Mapping[str, Collection[int]]) -> str:
    if not left:
        return "memory is still being freed on its devices"
    held = (f"pid {', '.join(map(str, pids))} on {device}" for device, pids in left.items())
    return f"processes of its last run still hold memory ({'; '.join(held)}; if they stay, end them with kill -9)"
