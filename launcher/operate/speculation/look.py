"""Looks at the metrics of engines all the time, and cuts what it sees into windows."""

import asyncio
from collections.abc import Mapping, Sequence

import httpx

from launcher.advice.look import look
from launcher.advice.window import Reading, Window
from launcher.operate.speculation.observation import Seen, Traffic
from proxy import engine_instruments as vllm

STEP = 1.0
"""Seconds between two looks."""
_PATIENCE = 3.0
"""Seconds an engine has to answer."""


class Watcher:
    """Of some engines: their names and the URLs of their metrics."""

    def __init__(self, engines: Mapping[str, str], client: httpx.AsyncClient, warm_up: int) -> None:
        """``warm_up``: windows after a start that are not whole."""
        self._engines = engines
        self._client = client
        self._warm_up = warm_up
        self._last: dict[str, Reading] = {}
        self._cold = dict.fromkeys(engines, 0)

    async def window(self, seconds: float, caps: Mapping[str, int]) -> tuple[Seen, ...]:
        """What is seen in so many seconds; ``caps``: of each engine, as it runs now."""
        windows = {name: Window("engine") for name in self._engines}
        for name, reading in self._last.items():
            windows[name].add(reading)
        until = asyncio.get_running_loop().time() + seconds
        await self._look(windows)
        while (left := until - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(min(STEP, left))
            await self._look(windows)
        return tuple(self._seen(name, window, caps[name]) for name, window in windows.items())

    async def _look(self, windows: Mapping[str, Window]) -> None:
        names: Sequence[str] = [*windows]
        readings = await asyncio.gather(*(look(self._client, self._engines[name], _PATIENCE) for name in names))
        for name, reading in zip(names, readings, strict=True):
            windows[name].add(reading)
            if reading is not None:
                self._last[name] = reading

    def _seen(self, name: str, window: Window, cap: int) -> Seen:
        if window.restarts or window.missed or not window.looks:
            self._cold[name] = self._warm_up + 1
        is_whole = self._cold[name] == 0
        self._cold[name] = max(0, self._cold[name] - 1)
        return Seen(name, cap, traffic_of(window), is_whole)


def traffic_of(window: Window) -> Traffic:
    """What an engine did between the first and the last look."""
    requests = window.increase(f"{vllm.TPOT}_count") or 0.0
    running = [value for value in window.gauges(lambda look: look.sum(vllm.RUNNING)) if value > 0]
    return Traffic(
        tokens=window.increase(vllm.GENERATED) or 0.0,
        requests=requests,
        batch=sum(running) / len(running) if running else 0.0,
        tpot=(window.increase(f"{vllm.TPOT}_sum") or 0.0) / requests if requests else None,
        drafts=window.increase(vllm.DRAFTS) or 0.0,
        drafted=window.increase(vllm.DRAFT_TOKENS) or 0.0,
        accepted=window.increase(vllm.ACCEPTED) or 0.0,
        by_position=tuple(_by_position(window)),
    )


def _by_position(window: Window) -> list[float]:
    found: list[float] = []
    while (value := window.increase(vllm.ACCEPTED_BY_POSITION, position=str(len(found)))) is not None:
        found.append(value)
    return found
