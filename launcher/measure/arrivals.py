"""Decision: when the requests of an open loop are due."""

import itertools
from collections.abc import Iterator, Sequence

from launcher.errors import MeasureError
from launcher.measure.load import Arrivals, Open
from launcher.measure.request import Request


def due_times(load: Open, requests: Sequence[Request], seed: int) -> Iterator[float]:
    """Seconds from the start of the run, rising, without an end: a trace begins again after its last request.

    The same seed gives the same times. Raises :class:`MeasureError` without a rate, or for a trace without times.
    """
    match load.arrivals:
        case Arrivals.TRACE:
            return _trace(load, requests)
        case Arrivals.CONSTANT:
            gap = 1 / _rate(load)
            return (number * gap for number in itertools.count())
        case Arrivals.POISSON:
            return _poisson(_rate(load), seed)


def _poisson(rate: float, seed: int) -> Iterator[float]:
    import numpy as np

    random, due = np.random.default_rng(seed), 0.0
    while True:
        due += float(random.exponential(1 / rate))
        yield due


def _trace(load: Open, requests: Sequence[Request]) -> Iterator[float]:
    times = [each.at for each in requests if each.at is not None]
    if len(times) < len(requests) or not times:
        raise MeasureError(
            f"{len(requests) - len(times)} of {len(requests)} requests have no time: give each `at`, in seconds, or "
            "`timestamp`, or send them by --rate"
        )
    if load.speed <= 0:
        raise MeasureError(f"a trace cannot be replayed at the speed {load.speed:g}: 1 is its own, 2 is twice as fast")
    first = times[0]
    again = times[-1] - first + (times[-1] - first) / max(1, len(times) - 1)  # after a usual gap
    if any(later < earlier for earlier, later in itertools.pairwise(times)):
        raise MeasureError("the requests of a trace are not in the order of their times: sort them")
    return ((round_ * again + each - first) / load.speed for round_ in itertools.count() for each in times)


def _rate(load: Open) -> float:
    if load.rate is None or load.rate <= 0:
        raise MeasureError(f"an open loop needs a rate above 0 requests a second, not {load.rate}: give --rate")
    return load.rate
