"""Decision: rows of the report's tables."""

from collections.abc import Iterator
from typing import NamedTuple

from launcher.measure.bench_shape import Benched
from launcher.measure.counted import Counted
from launcher.measure.figures_shape import Figures, Objectives
from launcher.measure.interval import Interval
from launcher.measure.quantiles import PERCENTS, needed
from launcher.measure.report.amounts import FEW, bounds, load, milliseconds, percent, rate


class Cell(NamedTuple):
    """A value and how sure it is."""

    value: str
    bounds: str = ""


LATENCIES = {
    "ttft": ("TTFT", "from sending a request to its first text"),
    "tpot": ("TPOT", "by output token after the first (mean ITL of a request)"),
    "e2e": ("whole answer", "from sending a request to its last token"),
    "pause": ("longest pause", "between two events of one stream"),
}
"""By the figure's name: what it is called, and what it means."""


def latencies(figures: Figures) -> Iterator[tuple[str, str, list[Cell]]]:
    """Name, meaning, and the mean and percentiles of each; TTFT and TPOT always next to each other."""
    for name, (title, meaning) in LATENCIES.items():
        told = getattr(figures, name)
        cells = [_cell(told.mean) if told.count else Cell("–")]
        cells += [_cell(told.percentiles[each]) for each in PERCENTS]
        yield title, meaning, cells


def _cell(interval: Interval | None) -> Cell:
    return Cell(FEW) if interval is None else Cell(milliseconds(interval.value), bounds(interval))


def too_few(figures: Figures) -> str:
    """What would be needed for percentiles that are not told; empty when all are."""
    missing = [percent for percent, told in figures.ttft.percentiles.items() if told is None]
    if not missing or not figures.ttft.count:
        return ""
    wanted = ", ".join(f"p{each} {needed(each)}" for each in missing)
    return f"{FEW}: of {figures.ttft.count} answers; needed are for {wanted}, and more where requests are slow together"


def rates(figures: Figures) -> Iterator[tuple[str, Cell]]:
    """Of the server."""
    yield "answers a second", Cell(rate(figures.request_rate.value), bounds(figures.request_rate, "rate"))
    yield "output tokens a second", Cell(rate(figures.output_rate.value), bounds(figures.output_rate, "rate"))
    yield "all tokens a second", Cell(rate(figures.total_rate.value), bounds(figures.total_rate, "rate"))
    yield "good requests", Cell(percent(figures.good_share.value), bounds(figures.good_share, "share") + " %")
    yield "goodput, answers a second", Cell(rate(figures.goodput.value), bounds(figures.goodput, "rate"))
    yield (
        "goodput, output tokens a second",
        Cell(rate(figures.good_output_rate.value), bounds(figures.good_output_rate, "rate")),
    )


def objectives(of: Objectives) -> str:
    """What makes a request good."""
    told = [
        f"{name} of at most {milliseconds(value)}"
        for name, value in (("TTFT", of.ttft), ("TPOT", of.tpot))
        if value is not None
    ]
    return (
        f"good: {' and '.join(told)}"
        if told
        else "good: answered at all (there are no objectives; give --ttft, --tpot)"
    )


def requests(figures: Figures) -> Iterator[tuple[str, str]]:
    """How many, how long, and how they went."""
    yield "requests", f"{figures.requests:,}, {figures.failed:,} of them failed"
    yield (
        "tokens of a request",
        f"{figures.prompt_tokens:,.0f} in its prompt, {figures.output_tokens:,.0f} in its answer",
    )
    if figures.paths:
        yield "path", ", ".join(f"{name} {percent(share)}" for name, share in sorted(figures.paths.items()))
    if figures.bypasses:
        yield "without prefill, because", ", ".join(f"{name}: {count:,}" for name, count in figures.bypasses.items())
    if len(figures.pools) > 1:
        yield "pool", ", ".join(f"{name} {percent(share)}" for name, share in sorted(figures.pools.items()))


def engines(counted: Counted) -> Iterator[tuple[str, str]]:
    """What they counted in the same time."""
    if counted.generated is not None:
        yield "tokens generated", f"{counted.generated:,.0f}"
    if counted.kv_received:
        yield "KV tokens received by decode", f"{counted.kv_received:,.0f}"
    if counted.acceptance is not None and counted.acceptance_length is not None:
        by_position = " · ".join(f"{100 * share:.0f}" for share in counted.accepted_by_position)
        told = f"{percent(counted.acceptance)} of drafted tokens, {counted.acceptance_length:.2f} tokens a step"
        yield "speculation accepted", told + (f"; by position {by_position} %" if by_position else "")
    if counted.preemptions is not None:
        yield "preemptions", f"{counted.preemptions:,.0f}"
    for fact, name, told_by in _FACTS:
        if (value := counted.facts.get(fact)) is not None:
            yield name, percent(value) if told_by == "share" else milliseconds(value) if told_by == "s" else rate(value)


_FACTS = (
    ("prefix_hit_rate", "prompt tokens found in prefix caches", "share"),
    ("kv_cache_usage", "KV cache in use, at most", "share"),
    ("batch", "requests in a batch, on average", "number"),
    ("queue_time_p95", "queue, p95", "s"),
    ("prefill_time_p50", "prefill, p50", "s"),
    ("kv_transfer_time_p95", "KV transfer, p95", "s"),
)


def asked(benched: Benched) -> str:
    """How it was measured, in one line."""
    settings = benched.settings
    span = f"{benched.figures.span.seconds:,.0f} s counted"
    return (
        f"workload {benched.sent.name}, {load(settings.load)}, seed {settings.seed}; {span}, after a warm-up of "
        f"{benched.warmed_up:,} requests"
    )


def conditions(benched: Benched) -> Iterator[tuple[str, str]]:
    """Where and by what."""
    told = benched.conditions
    yield "started", told.started
    yield "processor", f"{told.processor}, {told.cores} cores, {told.memory / 2**30:,.0f} GiB"
    if told.gpus:
        yield "GPUs", ", ".join(told.gpus)
    yield "system", told.system
    yield from sorted(told.versions.items())
    yield "seed", str(benched.settings.seed)
    yield "digest of the requests", benched.sent.digest[:16]
    yield "client", f"{benched.usage.client:.0%} of one core"
    if benched.usage.others is not None:
        yield "others on this machine", f"{benched.usage.others:.0%} of its processors"
