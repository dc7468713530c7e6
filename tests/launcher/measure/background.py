"""A fake engine for tests that are no coroutines: it runs in a thread."""

import asyncio
import threading

from tests.fakes.engine import FakeEngine


class Background:
    """Serves for the time of the ``with``."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> FakeEngine:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._engine.start(), self._loop).result(10)
        return self._engine

    def __exit__(self, *exc: object) -> None:
        asyncio.run_coroutine_threadsafe(self._engine.stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
