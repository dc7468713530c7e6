"""Watches a contender while it is under load: its memory at the worst, and how long its ``/health`` takes."""

import http.client
import threading
import time
from types import TracebackType

import psutil

_EVERY = 0.05
"""Seconds between two looks."""
_GIVES_UP = 10.0


class Watch:
    """Looks until the end of the ``with`` block."""

    def __init__(self, port: int, processes: list[psutil.Process]) -> None:
        self._port = port
        self._processes = processes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)
        self.before = self._resident()
        """MiB resident of all processes before the load."""
        self.peak = self.before
        self.health = 0.0
        """The slowest answer of ``/health`` in milliseconds; infinite when there was none."""

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_EVERY):
            self.peak = max(self.peak, self._resident())
            self.health = max(self.health, self._ask())

    def _ask(self) -> float:
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_GIVES_UP)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status != 200:
                return float("inf")
        except OSError:
            return float("inf")
        finally:
            connection.close()
        return (time.perf_counter() - began) * 1000

    def _resident(self) -> float:
        return sum(process.memory_info().rss for process in self._processes) / 2**20
