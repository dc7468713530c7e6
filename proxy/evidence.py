"""What one request shows about the instance that serves it, and about the pair that handed its KV over.

A connection that is refused, breaks or stays silent is the instance's fault. An error that decode answers to KV that
was handed over is the pair's: alone, both may be well. A client that leaves or is told that it is wrong is evidence of
nothing.
"""

import logging
import time

from proxy.errors import EngineError, EngineFailure, ProxyError
from proxy.metrics import Metrics
from proxy.pair import Pair
from proxy.pool import Member

logger = logging.getLogger(__name__)


class Evidence:
    """Of one request to one instance; ``pair`` is that of prefill and this decode instance, if KV was handed over."""

    def __init__(self, member: Member, metrics: Metrics, pair: Pair | None = None) -> None:
        self._member = member
        self._pair = pair
        self._metrics = metrics
        self._started = time.monotonic()

    def begun(self, *, streamed: bool) -> None:
        """The answer has begun, and well: the KV has arrived. Unless it is ``streamed``, it is also complete."""
        self._member.breaker.speaks()
        if self._pair is not None:
            self._pair.succeed()
            seconds = time.monotonic() - self._started if streamed else None
            self._metrics.handed_over(self._pair, well=True, seconds=seconds)

    def settle(self, error: ProxyError | None) -> None:
        """The answer is complete, or ended by this."""
        if error is None:
            self._member.breaker.succeed()
        elif isinstance(error, EngineFailure):
            self._blame(error)

    def _blame(self, failure: EngineFailure) -> None:
        self._metrics.failed(failure)
        now, pair = time.monotonic(), self._pair
        if pair is not None and isinstance(failure, EngineError):
            self._metrics.handed_over(pair, well=False)
            got_requests = pair.admits(now)
            if pair.fail(now, str(failure)):
                if got_requests:
                    self._metrics.suspended(pair)
                logger.warning("no hand-overs from %s for now: %s", pair.prefill, failure)
            return
        if self._member.breaker.fail(now, str(failure), answers=failure.answers, at_once=failure.at_once):
            self._metrics.opened(failure.instance)
            logger.warning("no requests for now: %s", failure)


class NoEvidence(Evidence):
    """Of a request whose outcome is judged elsewhere."""

    def begun(self, *, streamed: bool) -> None:
        """Not counted."""

    def settle(self, error: ProxyError | None) -> None:
        """Not counted."""
