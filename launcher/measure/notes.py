"""Decision: what speaks against relying on a measurement."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from launcher.measure.bench_shape import Settings, Usage
from launcher.measure.counted import Counted
from launcher.measure.figures_shape import Figures
from launcher.measure.load import Open
from launcher.measure.sample import Sample
from launcher.measure.steady import unsteady

_BUSY_CLIENT = 0.7
"""Of one core; Python uses one at a time."""
_BUSY_MACHINE = 0.15
"""Share of the processors above which others falsify a measurement."""
_LATE = 0.02
"""Seconds after which a request is late."""
_MANY_LATE = 0.01
_FEW_PREFILLED = 0.99


def notes(
    figures: Figures,
    samples: Sequence[Sample],
    counted: Counted,
    usage: Usage,
    settings: Settings,
    *,
    has_prefill: bool,
) -> Iterator[str]:
    """The worst first."""
    if figures.failed:
        kinds = ", ".join(f"{count} x {figures.examples[kind]}" for kind, count in figures.errors.items())
        yield f"{figures.failed} of {figures.requests} requests failed, and are in no latency: {kinds}"
    yield from _client(samples, usage, settings, figures)
    if usage.others is not None and usage.others > _BUSY_MACHINE:
        yield (
            f"something else used {usage.others:.0%} of this machine's processors meanwhile: measure again when it is "
            "idle"
        )
    yield from unsteady(samples, figures.span)
    handed_over = figures.paths.get("pd", 0.0)
    if has_prefill and figures.paths and handed_over < _FEW_PREFILLED:
        reasons = ", ".join(f"{reason} {count}" for reason, count in figures.bypasses.items())
        yield f"only {handed_over:.0%} of the answers came by prefill and decode{f' ({reasons})' if reasons else ''}"
    if math.isinf(figures.output_rate.high):
        yield "the time was too short, against one answer, to say how sure rates are: measure longer"
    again = max(Counter(each.number for each in samples).values(), default=1)
    if again > 1:
        yield f"the workload has too few requests: each came up to {again} times, which prefix caches remember"
    yield from counted.notes


def _client(samples: Sequence[Sample], usage: Usage, settings: Settings, figures: Figures) -> Iterator[str]:
    if usage.client > _BUSY_CLIENT:
        yield (
            f"this client used {usage.client:.0%} of one core, so that it may have been what limits: measure less load "
            "with each of several clients"
        )
    if not isinstance(settings.load, Open):
        return
    counted = [each for each in samples if figures.span.start <= each.due < figures.span.end]
    late = [each.sent - each.due for each in counted if each.sent - each.due > _LATE]
    if counted and len(late) > _MANY_LATE * len(counted):
        yield (
            f"{len(late)} of {len(counted)} requests were sent late, by up to {max(late) * 1000:,.0f} ms: the client "
            f"was busy, or {settings.load.most} requests were under way, the most at once; the load was not what was "
            "asked for"
        )
