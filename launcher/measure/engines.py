"""Looks at the engines' metrics while they are measured."""

import asyncio
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

import httpx

from launcher.advice.window import Window, read
from launcher.measure.counted import Counted
from launcher.measure.counting import counted, of_proxy
from launcher.measure.driver import certificates
from launcher.measure.target import Target

T = TypeVar("T")
_STEP = 1.0
"""Seconds between two looks."""
_PATIENCE = 3.0


async def counting(
    target: Target, work: Awaitable[T], *, after: float = 0.0, until: float | None = None
) -> tuple[T, Counted]:
    """What comes of the work, and what the engines counted from ``after`` seconds to ``until``, or to its end."""
    async with httpx.AsyncClient(trust_env=False, verify=certificates(target.url), timeout=_PATIENCE) as client:
        looks, stop = _Looks(target, client), asyncio.Event()
        if after <= 0:
            await looks.look()
        watching = asyncio.create_task(looks.watch(after, until, stop), name="engines' metrics")
        try:
            result = await work
        finally:
            stop.set()
            await watching
    return result, looks.counted()


class _Looks:
    def __init__(self, target: Target, client: httpx.AsyncClient) -> None:
        self._target, self._client = target, client
        self._windows: dict[str, Window] = {}
        self._reasons: dict[str, str] = {}
        self._begun = time.monotonic()
        self._times: list[float] = []

    async def watch(self, after: float, until: float | None, stop: asyncio.Event) -> None:
        """Look each second from then to then; the last time when it is to stop."""
        await self._wait(after, stop)
        while not stop.is_set() and (until is None or self._now() < until):
            if self._now() > after:
                await self.look()
            await self._wait(_STEP if until is None else min(_STEP, until - self._now()), stop)
        await self.look()

    async def look(self) -> None:
        """At all of them."""
        await self._look()
        self._times.append(self._now())

    def counted(self) -> Counted:
        """Between the first and the last look."""
        lasted = self._times[-1] - self._times[0] if self._times else 0.0
        return counted(self._windows, lasted, [*self._reasons.values()])

    def _now(self) -> float:
        return time.monotonic() - self._begun

    @staticmethod
    async def _wait(seconds: float, stop: asyncio.Event) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), max(0.0, seconds))

    async def _look(self) -> None:
        if (page := self._target.engine_metrics) is not None:
            if (text := await self._text(page)) is not None:
                with suppress(ValueError):
                    for name, told in of_proxy(text).items():
                        self._windows.setdefault(name, Window(told.role)).add(told.reading)
            return
        texts = await asyncio.gather(*(self._text(each.metrics) for each in self._target.engines))
        for engine, text in zip(self._target.engines, texts, strict=True):
            with suppress(ValueError):
                reading = None if text is None else read(text)
                self._windows.setdefault(engine.name, Window(engine.role)).add(reading)

    async def _text(self, url: str) -> str | None:
        try:
            answer = await self._client.get(url)
        except httpx.HTTPError as exc:
            self._reasons[url] = f"{url} did not answer ({type(exc).__name__})"
            return None
        if answer.status_code != httpx.codes.OK:
            self._reasons[url] = f"{url} answered {answer.status_code}"
            return None
        return answer.text
