"""The story of `launcher tune speculation`: measure every K, choose, measure what was chosen, correct it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from launcher.errors import MeasureError
from launcher.measure.interval import Interval
from launcher.speculation import starts
from launcher.speculation.choice import choices, undecided
from launcher.speculation.conclusion import best_fixed, conclude
from launcher.speculation.confirmed import Confirmed, confirmed, corrected, told
from launcher.speculation.evidence import Choice, Evidence, Point
from launcher.speculation.pooling import pooled
from launcher.speculation.record import Record
from launcher.speculation.setting import Cell, Setting, Start, Visit
from launcher.speculation.visit import Visitor

_ROUNDS = 3
"""Of the sweep, at most: the later ones only measure what would change a choice."""
_DRIFT = 0.15
"""Share by which K 0 may differ between the beginning and the end of a sweep without a word."""
_ATTEMPTS = 3
"""To find a schedule that gives what its parts promise."""
_VISITS = 3
"""Of one confirmation, at most: more only where it may be below K 0, but that may be chance, too."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is tuned."""

    profile: str
    """Its name."""
    methods: tuple[str, ...]
    ks: tuple[int, ...]
    """Those above 0."""
    concurrencies: tuple[int, ...]
    weights: Mapping[float, float]
    """Temperature -> share of the requests."""
    engines: int
    """That generate, and share the load."""
    largest: int | None
    """Batch of one engine."""
    seed: int
    rounds: int = _ROUNDS


async def tune(wanted: Wanted, visit: Visitor, record: Record, say: Callable[[str], None]) -> Evidence:
    """What ``record`` has is not measured again. ``say``: one line for each step. Raises :class:`MeasureError`."""
    await _sweep(wanted, visit, record, say)
    points = _points(record)
    _refuse_short(points)
    chosen: tuple[Choice, ...] = ()
    for attempt in range(1, _ATTEMPTS + 1):
        evidence = conclude(wanted.profile, points, wanted.weights, wanted.engines, wanted.largest, chosen)
        say(evidence.verdict)
        if not evidence.schedule:
            return evidence
        found = await _confirm(wanted, visit, record, say, evidence, attempt)
        better = corrected(evidence.choices, found, points, wanted.weights)
        if better is None:
            last = told(evidence.choices, found)
            return conclude(wanted.profile, points, wanted.weights, wanted.engines, wanted.largest, last)
        for each in found:
            if each.is_below:
                lost = f"{each.of_off.value:.2f} x K 0's goodput"
                say(f"corrected: at {each.concurrency} at once the schedule gave {lost}")
        chosen = better
    last = tuple(_never(each) for each in chosen)
    return conclude(wanted.profile, points, wanted.weights, wanted.engines, wanted.largest, last)


async def _sweep(wanted: Wanted, visit: Visitor, record: Record, say: Callable[[str], None]) -> None:
    settings = [Setting(method, k) for method in wanted.methods for k in wanted.ks]
    cells = [Cell(load, temperature) for load in wanted.concurrencies for temperature in wanted.weights]
    again: dict[Setting, Sequence[Cell]] = dict.fromkeys(settings, cells)
    for number in range(1, wanted.rounds + 1):
        await _visit(starts.sweep(number, again, again, wanted.seed), visit, record, say)
        again = _undecided(wanted, _points(record))
        if not again:
            return


def _undecided(wanted: Wanted, points: Sequence[Point]) -> dict[Setting, Sequence[Cell]]:
    found: dict[Setting, list[Cell]] = {}
    for method in wanted.methods:
        chosen = choices(points, wanted.weights, method)
        for load, ks in undecided(chosen, points, wanted.weights, method).items():
            for k in sorted(ks - {0}):
                found.setdefault(Setting(method, k), []).extend(Cell(load, each) for each in wanted.weights)
    return {**found}


async def _confirm(
    wanted: Wanted,
    visit: Visitor,
    record: Record,
    say: Callable[[str], None],
    evidence: Evidence,
    attempt: int,
) -> tuple[Confirmed, ...]:
    scheduled = Setting(evidence.method, evidence.k, evidence.schedule)
    fixed = Setting(evidence.method, best_fixed(evidence.points, wanted.weights, evidence.method))
    cells = [Cell(load, temperature) for load in wanted.concurrencies for temperature in wanted.weights]
    found: tuple[Confirmed, ...] = ()
    for number in range(_VISITS):
        every = starts.confirm(attempt, scheduled, fixed, cells, wanted.seed + number, number)
        await _visit(every, visit, record, say)
        found = confirmed(record.of_stage(f"confirm {attempt}"), scheduled, fixed, wanted.weights)
        if all(each.is_shown or not each.is_below for each in found):
            break
    return found


async def _visit(every: Iterable[Start], visit: Visitor, record: Record, say: Callable[[str], None]) -> None:
    every = [*every]
    for position, start in enumerate(every, start=1):
        if missing := record.missing(start):
            say(f"{start.stage}, start {position} of {len(every)}: {start.setting.name}")
            await visit(start, missing, record.add)
            _refuse_failures(record, start)


def _refuse_failures(record: Record, start: Start) -> None:
    mine = [each.point for each in record.of_stage(start.stage) if each.number == start.number]
    asked = sum(each.requests for each in mine)
    failed = sum(each.failed for each in mine)
    if asked and failed > asked / 2:
        raise MeasureError(
            f"{failed} of {asked} requests failed with {start.setting.name}: look at the logs in the work folder, or "
            "leave this K or method away (--k, --method)"
        )


def drifts(visits: Sequence[Visit]) -> tuple[str, ...]:
    """What speaks against relying on it: K 0 was not the same at the end of a sweep as at its beginning."""
    found = []
    off = [each for each in visits if each.stage.startswith("sweep") and not each.point.k]
    for first, last in pairwise(sorted(off, key=lambda each: (each.point.concurrency, each.point.temperature))):
        one, other = first.point, last.point
        if (one.concurrency, one.temperature) != (other.concurrency, other.temperature) or not one.goodput.value:
            continue
        if abs(other.goodput.value / one.goodput.value - 1) > _DRIFT:
            found.append(
                f"K 0 gave {one.goodput.value:,.1f} tokens/s at {one.concurrency} at once, and later "
                f"{other.goodput.value:,.1f}: the machine is not steady, so small gains may be chance"
            )
    return tuple(found)


def _refuse_short(points: Sequence[Point]) -> None:
    short = sorted({each.concurrency for each in points if not each.k and not math.isfinite(each.goodput.high)})
    if short:
        raise MeasureError(
            f"--seconds: at {', '.join(map(str, short))} at once a load was over before five answers had followed one "
            "another, so that nothing is known of chance: measure longer, or let answers be shorter; take another "
            "work folder (--work)"
        )


def _points(record: Record) -> tuple[Point, ...]:
    return pooled([each.point for each in record.of_stage("sweep")])


def _never(choice: Choice) -> Choice:
    reason = f"no schedule kept its promise in {_ATTEMPTS} attempts"
    return replace(choice, method="off", k=0, gain=Interval(1.0, 1.0, 1.0), reason=reason)
