"""Prints advice for people."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from launcher.advice.advice import Advice, Judgement
from launcher.advice.facts import FACTS
from launcher.advice.judge import lacking, open_facts
from launcher.advice.report import Seen
from launcher.advice.rule import Stage, Verdict
from launcher.advice.signs import Finding
from launcher.advice.situation import Origin, Situation
from launcher.advice.starts import commands
from launcher.advice.techniques import ABOUT

_BOTTLENECK = {
    "memory_short": "memory",
    "ttft_slow": "TTFT",
    "tokens_slow": "the speed of tokens",
    "throughput_short": "throughput",
}
_WIDTH = 120
_ORIGINS = (Origin.MEASURED, Origin.CONFIGURED, Origin.ANSWERED, Origin.DERIVED, Origin.DEFAULT)


def show(advice: Advice, seen: Seen, console: Console) -> None:
    """The bottleneck, each technique with reasons and figures, and what to do next."""
    for line in _seen(seen):
        _line(console, line)
    if seen.nothing_to_judge:
        return
    for line in _bottlenecks(advice):
        _line(console, line)
    # Without a terminal there is no width to fit, but cells have several lines.
    wide = console if console.is_terminal else Console(file=console.file, highlight=False, width=_WIDTH)
    wide.print(_table(advice))
    for judgement in advice.judgements:
        if _promising(judgement):
            _costs(console, judgement)
    for line in _next(advice):
        _line(console, line)
    for line in _facts(advice, is_watched=seen.window is not None):
        _line(console, line)


def _line(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _seen(seen: Seen) -> Iterator[str]:
    if seen.nothing_to_judge:
        yield f"Nothing to judge: no requests in {seen.window:.0f} s."
    elif seen.window is not None:
        count = "an unknown number of requests" if seen.requests is None else f"{seen.requests:g} requests"
        yield f"Watched {seen.window:.0f} s: {count}. Quantiles are estimates from histograms' buckets."
    for note in seen.notes:
        yield f"Note: {note}."
    if seen.window is not None:
        yield ""


def _bottlenecks(advice: Advice) -> Iterator[str]:
    there = [each for each in advice.bottlenecks if each.there]
    if there:
        yield f"The bottleneck is {_BOTTLENECK[there[0].fact]}: {_because(there[0])}."
        for each in there[1:]:
            yield f"Also short: {_BOTTLENECK[each.fact]}: {_because(each)}."
    elif advice.situation.value("anything_short") is False:
        yield "There is no bottleneck."
    else:
        yield "No bottleneck is known."
    for each in advice.bottlenecks:
        if each.there is False:
            yield f"Not short: {_BOTTLENECK[each.fact]}: {_because(each)}."
        elif each.there is None:
            yield f"Cannot be judged: {_BOTTLENECK[each.fact]}: nothing was measured or answered about it."
        if each.against:
            yield f"  But what was measured says otherwise: {each.against}."
    yield ""


def _because(finding: Finding) -> str:
    said = "you said so" if finding.origin is Origin.ANSWERED else ""
    return "; ".join(filter(None, (said, finding.because)))


def _table(advice: Advice) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0))
    for heading in ("TECHNIQUE", "VERDICT", "WHY", "EXPECTED"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "VERDICT")
    for judgement in advice.judgements:
        about = ABOUT[judgement.technique]
        title = about.title + (" (in use)" if judgement.in_use else "")
        expected = "\n".join(f"{gain.text} ({gain.source})" for gain in about.gains) if _promising(judgement) else ""
        cells = (title, _verdict(judgement), "\n".join(_why(judgement, advice.situation)), expected)
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _promising(judgement: Judgement) -> bool:
    return not judgement.in_use and judgement.verdict in (Verdict.YES, Verdict.FIRST_MEASURE)


def _verdict(judgement: Judgement) -> str:
    if not judgement.in_use:
        return judgement.verdict.value
    return {Verdict.YES: "keep", Verdict.NO: "take it out"}.get(judgement.verdict, judgement.verdict.value)


def _why(judgement: Judgement, situation: Situation) -> Iterator[str]:
    decisive = [each for each in judgement.reasons if each.rule.verdict is judgement.verdict] or judgement.reasons
    for reason in decisive:
        yield f"{reason.text} [{reason.rule.name}; {reason.rule.source}]"
    if judgement.verdict is Verdict.NO:
        if judgement.change:
            yield f"Would have to change: {'; '.join(judgement.change)}."
        if not judgement.reasons:
            yield "nothing that is known speaks for it"
        return
    missing = dict.fromkeys(lacking(judgement, situation))
    if missing:
        yield f"Not known yet, and decisive: {', '.join(missing)}."


def _costs(console: Console, judgement: Judgement) -> None:
    about = ABOUT[judgement.technique]
    _line(console, f"{about.title} costs: {'; '.join(about.costs)}.")
    for gain in about.gains:
        _line(console, f"  Measure {gain.metric}: {gain.measure}.")


def _next(advice: Advice) -> Iterator[str]:
    yield ""
    for judgement in advice.withdraw:
        yield f"First take out, or change as said above: {ABOUT[judgement.technique].title}."
    step = advice.next_step
    for stage in advice.skipped:
        name = "PD" if stage is Stage.PD else stage.value.capitalize()
        yield f"{name} cannot be judged yet{'' if step is None else ', though it comes first'}."
    if step is None:
        if advice.verdict is Verdict.CANNOT_SAY:
            yield "No technique can be recommended on what is known."
        else:
            yield f"No: none of {'the others' if advice.withdraw else 'these techniques'} will help."
        return
    about = ABOUT[step.technique]
    order = "" if about.stage is Stage.MORE else " (the order is quantization, speculation, PD: one at a time)"
    measure = "" if step.verdict is Verdict.YES else ", but measure first"
    yield f"Next: {about.title}{measure}{order}."
    yield f"In a profile of your own: {about.keys}."
    if advice.start is not None:
        yield f"Start from the shipped profile {advice.start.profile}: {advice.start.because}."
        yield from (f"  {command}" for command in commands(advice.start))


def _facts(advice: Advice, *, is_watched: bool) -> Iterator[str]:
    facts = advice.situation.facts
    yield ""
    for origin in _ORIGINS:
        shown = [
            f"{name} {advice.situation.shown(name)}" for name in FACTS if name in facts and facts[name].origin is origin
        ]
        if shown:
            yield f"{origin.value.capitalize()}: {', '.join(shown)}."
    if missing := [*open_facts(advice)]:
        ways = "`--answer NAME=VALUE`" if is_watched else "`--answer NAME=VALUE`, or measured with `--window 60`"
        objective = "; objectives.tpot says which speed of tokens is enough" if "tokens_slow" in missing else ""
        yield f"Not known: {', '.join(missing)} ({ways}{objective})."
