"""Decision: all points of a tuning -> method, schedule, and the sentence that says what follows."""

import math
from collections.abc import Mapping, Sequence

from launcher.measure.interval import Interval
from launcher.speculation import schedule as schedules
from launcher.speculation.choice import OFF, choices
from launcher.speculation.evidence import Choice, Evidence, Origin, Point
from launcher.speculation.model import Model, fit
from launcher.speculation.ratios import goodput_ratio

_LARGEST_GAIN = 100.0


def conclude(
    profile: str,
    points: Sequence[Point],
    weights: Mapping[float, float],
    engines: int,
    largest: int | None,
    confirmed: Sequence[Choice] = (),
) -> Evidence:
    """``engines``: those that generate and share the load; ``largest``: the batch of one, where it is known.

    An engine has one method, so it is the one that gains most over all loads. ``confirmed``: choices that later
    measurements put in place of those of the points.
    """
    methods = sorted({each.method for each in points if each.k})
    by_method = {method: choices(points, weights, method) for method in methods}
    method = max(by_method, key=lambda each: _gained(by_method[each]), default=OFF)
    later = {each.concurrency: each for each in confirmed}
    chosen = tuple(later.get(each.concurrency, each) for each in by_method.get(method, ()))
    model = model_of(points, method, engines)
    found = schedules.schedule(chosen, engines, largest, model)
    if not found:
        return Evidence(profile, tuple(points), chosen, (), OFF, 0, _no(chosen, len(methods)))
    k = max(each for _, _, each in found)
    modelled = () if model is None else _between(points, chosen, engines, method, found, model)
    return Evidence(profile, (*points, *modelled), chosen, found, method, k, _yes(method, chosen, found, engines))


def best_fixed(points: Sequence[Point], weights: Mapping[float, float], method: str) -> int:
    """The K above 0 that gives most over all loads together, if it were the only one."""
    measured = [each for each in points if each.origin is Origin.MEASURED]
    loads = sorted({each.concurrency for each in measured})

    def gained(k: int) -> float:
        total = 0.0
        for load in loads:
            mine = [each for each in measured if (each.concurrency, each.method, each.k) == (load, method, k)]
            off = [each for each in measured if (each.concurrency, each.k) == (load, 0)]
            if mine and off:
                value = goodput_ratio(mine, off, weights).value
                total += math.log(min(max(value, 1 / _LARGEST_GAIN), _LARGEST_GAIN))
        return total

    return max((k for k in {each.k for each in measured if each.method == method}), key=lambda k: (gained(k), -k))


def model_of(points: Sequence[Point], method: str, engines: int) -> Model | None:
    """Fitted to what was measured of a method and of K 0."""
    mine = [each for each in points if each.origin is Origin.MEASURED and (each.k == 0 or each.method == method)]
    return fit(mine, engines)


def _gained(chosen: Sequence[Choice]) -> float:
    return sum(math.log(min(each.gain.value, _LARGEST_GAIN)) for each in chosen if each.k)


def _no(chosen: Sequence[Choice], methods: int) -> str:
    if not chosen:
        return "Do not speculate: nothing was measured with and without it at the same load."
    said = "; ".join(f"{each.concurrency} at once: {each.reason}" for each in chosen)
    which = "it" if methods == 1 else f"any of {methods} methods"
    return f"Do not speculate: no load shows a gain by {which}. {said}."


def _yes(method: str, chosen: Sequence[Choice], found: schedules.Schedule, engines: int) -> str:
    parts = [
        f"K {each.k} at {each.concurrency} at once ({_times(each.gain)})"
        if each.k
        else f"none at {each.concurrency} at once"
        for each in chosen
    ]
    spread = f", spread over {engines} engines" if engines > 1 else ""
    beyond = "" if found[-1][2] else f" Nothing is drafted from {found[-1][0]} running requests of an engine on."
    return f"Speculate by {method}: {', '.join(parts)}{spread}.{beyond}"


def _times(gain: Interval) -> str:
    if not math.isfinite(gain.value):
        return "goodput where there was none"
    return f"{gain.value:.2f} x the goodput, {gain.low:.2f} to {gain.high:.2f}"


def _between(
    points: Sequence[Point],
    chosen: Sequence[Choice],
    engines: int,
    method: str,
    found: schedules.Schedule,
    model: Model,
) -> tuple[Point, ...]:
    """What the model says of the batches between tested ones at which K changes: both K there."""
    tested = {schedules.batch_of(each.concurrency, engines) for each in chosen}
    edges = {batch for first, last, _ in found for batch in (first, last) if min(tested) < batch < max(tested)} - tested
    ks = sorted({each.k for each in chosen} | {0})
    temperature = max((each.temperature for each in points), default=0.0)
    return tuple(_modelled(model, method, k, batch, engines, temperature) for batch in sorted(edges) for k in ks)


def _modelled(model: Model, method: str, k: int, batch: int, engines: int, temperature: float) -> Point:
    value = engines * model.throughput(batch, k)
    rate = Interval(value, value * (1 - model.error), value * (1 + model.error))
    tpot = batch * engines / value
    unknown = Interval(math.nan, -math.inf, math.inf)
    return Point(
        method=method if k else OFF,
        k=k,
        concurrency=batch * engines,
        temperature=temperature,
        goodput=rate,
        throughput=rate,
        tpot=Interval(tpot, tpot * (1 - model.error), tpot * (1 + model.error)),
        ttft=unknown,
        acceptance=(model.length(k) - 1) / k if k else None,
        acceptance_length=model.length(k) if k else None,
        requests=0,
        failed=0,
        origin=Origin.MODELLED,
    )
