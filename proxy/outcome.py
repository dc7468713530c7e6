"""Decision: how a request ended."""

from collections.abc import Callable

from proxy.errors import BadRequest, ClientGone, Draining, EngineRejection, Overloaded, ProxyError
from proxy.record import Outcome, Phase, Record

Tell = Callable[[Record, Outcome], None]
"""Is told of a request's end."""


def outcome_of(record: Record, status: int, error: ProxyError | None) -> Outcome:
    """By the status of its answer and the error that ended it early, if any."""
    if isinstance(error, ClientGone):
        return Outcome.LEFT
    if isinstance(error, Overloaded | Draining):
        return Outcome.REFUSED
    if isinstance(error, BadRequest | EngineRejection):
        return Outcome.REJECTED
    if record.failure is not None:
        return Outcome.BROKEN_OFF if record.phase is Phase.ANSWER else Outcome.FAILED
    if status < 400:
        return Outcome.OK
    return Outcome.REJECTED if status < 500 else Outcome.FAILED
