"""How many requests are served at a time: the others wait, clients taking turns, or are refused at once.

A request is refused early when the queue is full, or when by the pace of late it would wait too long anyway.
"""

import asyncio
import time
from collections import OrderedDict, deque

from proxy.errors import Draining, NoRoom, Overloaded
from proxy.settings import Admission as Limits

_WEIGHT = 0.2
"""Of the newest interval in the moving average of the pace."""


class Admission:
    """The door of one worker. ``in_flight`` requests are inside, ``waiting`` before it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._left_at = 0.0
        self._pace: float | None = None
        self._idle: asyncio.Event | None = None
        self.held = 0
        """Bytes of request bodies."""
        self.in_flight = 0
        self.waiting = 0
        self.closed = False
        self.closing = False
        """Whether it will be closed in a moment. Only set, so that a signal's handler may do it."""

    def try_enter(self) -> bool:
        """Take a place if there is one; else :meth:`wait` for it. Who has one calls :meth:`leave`, once.

        Raises :class:`Draining`, or :class:`Overloaded` when it is no use to wait.
        """
        if self.closed:
            raise Draining()
        if self.in_flight < self._limits.concurrency and not self.waiting:
            self.in_flight += 1
            return True
        expected = (self.waiting + 1) * (self._pace or 0.0)
        # One may always wait: the pace is measured only while somebody does, so a slow moment could never be outlived.
        if self.waiting >= self._limits.queue or (self.waiting and expected > self._limits.wait):
            raise Overloaded(expected)
        return False

    def leave(self) -> None:
        """Give the place to the next one who waits."""
        now = time.monotonic()
        if self.waiting:
            interval = now - self._left_at
            self._pace = interval if self._pace is None else self._pace + _WEIGHT * (interval - self._pace)
        self._left_at = now
        heir = self._next()
        if heir is not None:
            heir.set_result(None)  # the place passes on: in_flight stays
            return
        self.in_flight -= 1
        if not self.in_flight and self._idle is not None:
            self._idle.set()

    def hold(self, size: int) -> None:
        """Make room for so many bytes, until they are dropped; raises :class:`NoRoom`."""
        if self.held + size > self._limits.memory:
            raise NoRoom
        self.held += size

    def drop(self, size: int) -> None:
        """They are needed no more."""
        self.held -= size

    def close(self) -> None:
        """Refuse all that is new, and those that wait."""
        self.closed = self.closing = True
        while (waiting := self._next()) is not None:
            waiting.set_exception(Draining())

    async def until_idle(self) -> None:
        """Wait until nobody is inside."""
        if self.in_flight:
            self._idle = asyncio.Event()
            await self._idle.wait()

    async def wait(self, client: str) -> None:
        """Wait for a place; ``client`` is who takes turns with others.

        Raises :class:`Overloaded` or :class:`Draining`.
        """
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(client, deque()).append(place)
        if not self.waiting:
            self._left_at = time.monotonic()  # what ended before anybody waited says nothing of the pace
        self.waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait):
                await place
        except TimeoutError:
            if place.cancelled():
                self._forget(client, place)
                raise Overloaded(self._limits.wait) from None
            place.result()  # it was given, or refused, in the same moment
        except asyncio.CancelledError:
            if place.cancelled():
                self._forget(client, place)
            elif place.exception() is None:
                self.leave()
            raise

    def _next(self) -> asyncio.Future[None] | None:
        """The first in the queue of the client whose turn it is, who then goes to the end of the line."""
        while self._queues:
            client, queue = self._queues.popitem(last=False)
            place = queue.popleft()
            if queue:
                self._queues[client] = queue
            if place.done():  # it was cancelled or timed out, and its task has not run since
                continue
            self.waiting -= 1
            return place
        return None

    def _forget(self, client: str, place: asyncio.Future[None]) -> None:
        self.waiting -= 1
        queue = self._queues.get(client)
        if queue is None or place not in queue:  # its turn came when it had given up
            return
        queue.remove(place)
        if not queue:
            del self._queues[client]
