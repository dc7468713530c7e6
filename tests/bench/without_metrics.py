"""The proxy without counting, to measure what its metrics cost; takes the proxy's arguments.

Requests are neither counted nor timed, and answers are not searched for their tokens.
"""

import sys

from proxy import app, streaming
from proxy.api import completions
from proxy.cli import main
from proxy.metrics import Metrics


class _Nothing:
    """In place of a histogram or counter."""

    def observe(self, seconds: float) -> None:
        """Forget it."""

    def inc(self) -> None:
        """Forget it."""


class _Silent(Metrics):
    waited = kv_stranded = kv_released = _Nothing()  # type: ignore[assignment]

    def __setattr__(self, name: str, value: object) -> None:
        if not hasattr(_Silent, name):
            super().__setattr__(name, value)

    def _forget(self, *_: object, **__: object) -> None:
        """In place of whatever counts."""

    failed = opened = suspended = handed_off = handed_over = canary = retried = refused = finished = _forget  # type: ignore[assignment]


if __name__ == "__main__":
    app.Metrics = _Silent  # type: ignore[misc]
    streaming.usage_of = completions.usage_of = lambda text: None  # type: ignore[assignment]
    sys.exit(main())
