"""Lets engines that share a device start one after another, in the order in which they ask."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from launcher.local.start_order import Ahead, ahead_of


class Turns:
    """Of the engines of one deployment. ``devices``: what each needs."""

    def __init__(self, devices: Mapping[str, Collection[str]]) -> None:
        self._devices = devices
        self._line: list[str] = []
        self._moved = asyncio.Event()
        self._changes: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, name: str, waits: Callable[[Ahead], None]) -> AsyncIterator[None]:
        """Wait for those ahead, and keep those behind waiting; ``waits`` is told whom it waits for, as that changes."""
        self._line.append(name)
        try:
            told = None
            while ahead := ahead_of(name, self._line, self._devices):
                if told != ahead[-1]:
                    told = ahead[-1]
                    waits(told)
                await self._moved.wait()
            yield
        finally:
            self._line.remove(name)
            self._moved.set()
            self._moved = asyncio.Event()

    def came_or_went(self, name: str) -> None:
        """It has started or ended: memory of its devices was taken or given back."""
        self._changes[name] += 1

    def unrest(self, name: str) -> int:
        """How often a neighbour of ``name`` has started or ended so far."""
        return sum(count for other, count in self._changes.items() if other != name and self._share(name, other))

    def _share(self, one: str, other: str) -> bool:
        return not {*self._devices.get(one, ())}.isdisjoint(self._devices.get(other, ()))
