"""What is done at the end of every request: count it, log it."""

import logging

from proxy.errors import ClientGone, EngineFailure, ProxyError
from proxy.metrics import Metrics
from proxy.record import Record

logger = logging.getLogger(__name__)


class Finish:
    """Ends the record of one request. Call it once, with the status and the error that ended it early, if any."""

    def __init__(self, record: Record, metrics: Metrics) -> None:
        self.record = record
        self._metrics = metrics

    def __call__(self, status: int, error: ProxyError | None = None) -> None:
        if error is not None:
            self.record.failure = error.kind if isinstance(error, EngineFailure) else type(error).__name__
        if isinstance(error, ClientGone):
            self._metrics.client_disconnects.inc()
        self._metrics.finished(self.record, status)
        logger.info("%s", self.record.line(status))

    def after_start(self, status: int, error: ProxyError | None) -> None:
        """The end of an answer whose status was sent already: only a client that left changes it."""
        if isinstance(error, EngineFailure):
            self.failed(error)
        self(error.status if isinstance(error, ClientGone) else status, error)

    def failed(self, failure: EngineFailure) -> None:
        """Count a failure of an instance; the request may go on elsewhere."""
        self._metrics.failed(failure)
