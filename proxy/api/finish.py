"""What is done at the end of every request: count it, log it."""

import logging
import time

from proxy.admission import Admission
from proxy.disconnect import Receive, unless_gone
from proxy.errors import ClientGone, Draining, EngineFailure, Overloaded, ProxyError
from proxy.metrics import Metrics
from proxy.outcome import Tell, outcome_of
from proxy.record import Phase, Record
from proxy.tracing import Trace

logger = logging.getLogger(__name__)


class Finish:
    """Ends the record of one request. Call it once, with the status and the error that ended it early, if any."""

    def __init__(
        self,
        record: Record,
        metrics: Metrics,
        admission: Admission,
        trace: Trace | None = None,
        tell: Tell | None = None,
    ) -> None:
        """``tell`` is told of the end, of requests on routes that generate."""
        self.record = record
        self._tell = tell
        self._metrics = metrics
        self._admission = admission
        self._trace = trace
        self._inside = False
        self._held = 0

    def hold(self, size: int) -> None:
        """Keep so many more bytes of the request's body until its end; raises :class:`proxy.errors.NoRoom`."""
        self._admission.hold(size)
        self._held += size

    async def enter(self, receive: Receive) -> None:
        """Take a place among the requests that are served, when there is one; the end gives it back.

        Raises :class:`proxy.errors.Overloaded`, :class:`proxy.errors.Draining` or :class:`ClientGone`.
        """
        if not self._admission.try_enter():
            await self._wait(receive)
        self._inside = True
        self.record.phase = Phase.PREFILL

    async def _wait(self, receive: Receive) -> None:
        self.record.phase, began = Phase.QUEUE, time.monotonic()
        try:
            await unless_gone(self._admission.wait(self.record.client or ""), receive)
        finally:
            self._metrics.waited.observe(time.monotonic() - began)

    def __call__(self, status: int, error: ProxyError | None = None) -> None:
        self._admission.drop(self._held)
        if self._inside:
            self._admission.leave()
        if error is not None:
            self.record.failure = error.kind if isinstance(error, EngineFailure) else type(error).__name__
            self.record.reason = str(error)
        if isinstance(error, Overloaded | Draining):
            self._metrics.refused(type(error).__name__)
        trace = None if self._trace is None else self._trace.id
        outcome = outcome_of(self.record, status, error)
        self._metrics.finished(self.record, status, outcome, trace)
        if self._tell is not None:
            self._tell(self.record, outcome)
        if self._trace is not None:
            self._trace.end(status)
        logger.info(self.record.line(status, outcome))

    def after_start(self, status: int, error: ProxyError | None) -> None:
        """The end of an answer whose status was sent already: only a client that left changes it."""
        self(error.status if isinstance(error, ClientGone) else status, error)
