"""Drives a load against one server: every request that was sent becomes a sample, whatever became of it."""

import asyncio
import ssl
import time
from collections.abc import Sequence
from itertools import count

import httpx

from launcher.errors import MeasureError
from launcher.measure.arrivals import due_times
from launcher.measure.hopeless import ENOUGH, hopeless
from launcher.measure.load import Closed, Load, Open
from launcher.measure.request import Request
from launcher.measure.sample import Sample
from launcher.measure.stream import ask
from launcher.measure.target import Target
from launcher.measure.telling import Tell, quiet
from launcher.trust import trust

_PATIENCE = httpx.Timeout(10.0, read=600.0, pool=None)
"""Seconds; a long prompt on a CPU takes minutes until its first token."""
_IDLE = 2.0
"""Seconds after which a connection is not used again: vLLM closes one after 5, and a request may cross that."""
_BREATH = 0.1
"""Seconds that a client of a closed loop waits after a failure, so that refusals become no storm."""
_TITLE = "measuring"


async def drive(
    target: Target,
    requests: Sequence[Request],
    load: Load,
    *,
    seed: int = 0,
    seconds: float | None = None,
    keep_text: bool = False,
    tell: Tell = quiet,
) -> tuple[Sample, ...]:
    """Send these requests in their order for so many seconds, the first ones again when they do not suffice; or once.

    What is under way then is waited for. Samples are in the order of sending. Raises :class:`MeasureError` when nothing
    can be asked at all: no connection, no permission, no such model.
    """
    if not requests:
        raise MeasureError("there are no requests to send: the workload is empty")
    unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=_IDLE)
    async with httpx.AsyncClient(
        trust_env=False, verify=certificates(target.url), timeout=_PATIENCE, limits=unlimited
    ) as client:
        run = _Run(client, target, requests, seconds, keep_text, tell)
        try:
            await (run.closed(load.concurrency) if isinstance(load, Closed) else run.open(load, seed))
        except ExceptionGroup as group:
            errors, others = group.split(MeasureError)
            if errors is None or others is not None:
                raise
            raise errors.exceptions[0] from None
    run.judge()
    return tuple(sorted(run.samples, key=lambda each: each.sent))


def certificates(url: str) -> ssl.SSLContext | bool:
    """Whom to believe: on this machine anybody, as a certificate is for the name that clients use."""
    return httpx.URL(url).host not in {"127.0.0.1", "localhost", "::1"} and trust()


class _Run:
    def __init__(
        self,
        client: httpx.AsyncClient,
        target: Target,
        requests: Sequence[Request],
        seconds: float | None,
        keep_text: bool,
        tell: Tell,
    ) -> None:
        self.samples: list[Sample] = []
        self._client, self._target, self._requests = client, target, requests
        self._seconds, self._keep_text, self._tell = seconds, keep_text, tell
        self._start = time.perf_counter()

    async def closed(self, concurrency: int) -> None:
        """So many clients."""
        numbers = count()

        async def work() -> None:
            while self._now() < (self._seconds or float("inf")):
                number = next(numbers)
                if self._seconds is None and number >= len(self._requests):
                    return
                if (await self._ask(number, None)).error is not None:
                    await asyncio.sleep(_BREATH)

        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())

    async def open(self, load: Open, seed: int) -> None:
        """At the load's own times."""
        room = asyncio.Semaphore(load.most)

        async def one(number: int, due: float) -> None:
            try:
                await self._ask(number, due)
            finally:
                room.release()

        async with asyncio.TaskGroup() as group:
            for number, due in enumerate(due_times(load, self._requests, seed)):
                if number >= len(self._requests) if self._seconds is None else due >= self._seconds:
                    return
                await asyncio.sleep(max(0.0, due - self._now()))
                await room.acquire()
                group.create_task(one(number, due))

    def judge(self) -> None:
        """Raises :class:`MeasureError` when the first samples say that nothing can be asked."""
        if said := hopeless(self.samples[:ENOUGH], self._target.url):
            raise MeasureError(said)

    async def _ask(self, number: int, due: float | None) -> Sample:
        at = number % len(self._requests)
        sample = await ask(
            self._client,
            self._target,
            self._requests[at],
            number=at,
            due=due,
            start=self._start,
            keep_text=self._keep_text,
        )
        self.samples.append(sample)
        if len(self.samples) == ENOUGH:
            self.judge()
        if self._seconds is None:
            self._tell(_TITLE, len(self.samples), len(self._requests))
        else:
            self._tell(_TITLE, min(int(self._now()), int(self._seconds)), int(self._seconds))
        return sample

    def _now(self) -> float:
        return time.perf_counter() - self._start
