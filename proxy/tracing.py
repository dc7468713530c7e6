"""Shape: what a request tells of its way to a collector of traces, and the start of that.

::

    POST /v1/completions           from the request to the last byte of its answer
    ├── prefill                    one such leg for each try
    ├── kv hand-over               from prefill's answer to decode's first byte
    └── decode, or aggregated      to the end of the answer, with the event "first byte"

Nothing of OpenTelemetry is imported unless a collector is configured.
"""

from enum import StrEnum
from typing import Protocol

from proxy.config import ConfigError
from proxy.headers import RawHeaders
from proxy.record import Record
from proxy.settings import Tracing

MISSING = (
    "proxy.tracing needs packages that are not installed: pip install 'duet-serve[tracing]' (in Duet's checkout "
    "pip install '.[tracing]'), or take the key away"
)


class LegKind(StrEnum):
    """The names of spans of one request to one instance."""

    PREFILL = "prefill"
    DECODE = "decode"
    AGGREGATED = "aggregated"


class Leg(Protocol):
    """The span of one request to one instance."""

    def onto(self, headers: RawHeaders) -> RawHeaders:
        """The headers with this span in them, in place of the client's."""
        ...

    def first_byte(self) -> None:
        """The answer has begun."""
        ...

    def end(self, error: BaseException | None) -> None:
        """It is complete, or was ended by this. To be called once."""
        ...


class Trace(Protocol):
    """The spans of one request."""

    @property
    def id(self) -> str | None:
        """32 hexadecimal digits; ``None`` when this one is not sent to the collector."""
        ...

    def leg(self, kind: LegKind, instance: str) -> Leg:
        """A request is sent to an instance."""
        ...

    def end(self, status: int) -> None:
        """The request is over; its record says how. To be called once."""
        ...


class Tracer(Protocol):
    """Makes traces and sends them away in the background; no request ever waits for that or fails by it."""

    def begin(self, record: Record, route: str, headers: RawHeaders) -> Trace:
        """A request has come; a trace of which its headers tell is continued."""
        ...

    async def aclose(self) -> None:
        """Send what is left, for a second or two."""
        ...


def check(settings: Tracing | None) -> None:
    """Raises :class:`proxy.config.ConfigError` when packages are missing for what the settings want."""
    if settings is None:
        return
    try:
        import proxy.spans  # noqa: F401
    except ModuleNotFoundError as exc:
        raise ConfigError(MISSING) from exc


def tracer(settings: Tracing | None) -> Tracer | None:
    """What the settings want; raises as :func:`check` does."""
    if settings is None:
        return None
    check(settings)
    from proxy.spans import Spans

    return Spans(settings)
