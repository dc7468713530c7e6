"""Decision: samples -> figures."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from launcher.measure import rates
from launcher.measure.figures_shape import Figures, Objectives, Span
from launcher.measure.hopeless import kind_of
from launcher.measure.quantiles import distribution, share
from launcher.measure.sample import Sample


def span_of(samples: Sequence[Sample], warm_up: float, seconds: float | None) -> Span:
    """What is counted of a run that sent requests for so many seconds (``None``: each once) after ``warm_up`` seconds.

    Of a run by number the end is when the last request was sent, as from then on fewer and fewer are served at once;
    where that would leave less than half of it, it is the last answer.
    """
    if seconds is not None:
        return Span(warm_up, seconds)
    last = max((each.sent for each in samples), default=0.0)
    end = max((each.sent + each.total for each in samples), default=0.0)
    return Span(warm_up, last if last - warm_up >= (end - warm_up) / 2 else max(end, warm_up))


def figures(samples: Sequence[Sample], span: Span, objectives: Objectives) -> Figures:
    """Of the samples of one run, those of its warm-up too; they may be in any order."""
    samples = sorted(samples, key=lambda each: each.sent)
    sent = [each for each in samples if span.start <= each.sent < span.end]
    whole = [each for each in sent if each.error is None]
    done = [each for each in samples if each.error is None]
    good = [each for each in done if is_good(each, objectives)]
    failed = [each.error for each in sent if each.error is not None]
    return Figures(
        span=span,
        objectives=objectives,
        requests=len(sent),
        failed=len(failed),
        errors=Counter(map(kind_of, failed)),
        examples={kind_of(error): error for error in reversed(failed)},
        ttft=distribution([each.ttft for each in whole if each.ttft is not None]),
        tpot=distribution([each.tpot for each in whole if each.tpot is not None]),
        e2e=distribution([each.total for each in whole]),
        pause=distribution([each.longest_pause for each in whole if each.longest_pause is not None]),
        request_rate=rates.rate(done, span, rates.ended),
        output_rate=rates.rate(done, span, rates.output),
        total_rate=rates.rate(done, span, lambda *of: rates.output(*of) + rates.prompt(*of)),
        good_share=share([is_good(each, objectives) for each in sent]),
        goodput=rates.rate(good, span, rates.ended),
        good_output_rate=rates.rate(good, span, rates.output),
        prompt_tokens=_average(each.prompt_tokens for each in whole),
        output_tokens=_average(each.tokens for each in whole),
        paths=_shares(whole, lambda each: each.path),
        bypasses=Counter(each.bypass for each in whole if each.bypass),
        pools=_shares(whole, lambda each: each.pool),
    )


def is_good(sample: Sample, objectives: Objectives) -> bool:
    """Whether it was answered within the objectives; an answer of one token has no time by token to miss."""
    if sample.error is not None:
        return False
    first = sample.total if sample.ttft is None else sample.ttft
    if objectives.ttft is not None and first > objectives.ttft:
        return False
    return objectives.tpot is None or sample.tpot is None or sample.tpot <= objectives.tpot


def _average(values: Iterable[int | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else float("nan")


def _shares(samples: Sequence[Sample], of: Callable[[Sample], str | None]) -> Mapping[str, float]:
    counts = Counter(value for each in samples if (value := of(each)))
    return {name: count / len(samples) for name, count in counts.items()}
