"""Decision: what engines told -> one page of metrics under names of ours.

What an instance told is kept as text and read when somebody asks: engines are looked at far more often.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import Metric
from prometheus_client.samples import Sample

from proxy import engine_instruments as known
from proxy.engine_instruments import RENAMED_LABELS, TOLD
from proxy.engine_samples import samples
from proxy.instrument import Instrument

_SHOWN = {source: (told.shown, name) for told in TOLD for source, name in told.samples.items()}
_WANTED = frozenset({*_SHOWN, known.CACHE_CONFIG})


@dataclass(frozen=True, slots=True)
class Look:
    """One instance, when it was looked at last."""

    engine: str
    role: str
    text: str
    """Of its ``/metrics``; empty when there is none that is fresh."""
    age: float | None
    """Seconds; ``None`` when it never told any."""
    version: str
    model: str
    acceptance: float | None
    accepted_length: float | None


def families(looks: Iterable[Look]) -> list[Metric]:
    """All of them, in the order of the table; what no engine has is left out."""
    found: dict[str, Metric] = {}

    def add(instrument: Instrument, sample: Sample) -> None:
        family = found.get(instrument.name)
        if family is None:
            family = found[instrument.name] = Metric(instrument.name, instrument.meaning, instrument.kind)
        family.samples.append(sample)

    for look in looks:
        ours = {"engine": look.engine, "role": look.role}
        told = _told(look.text)
        for instrument, value in _made(look, told=told is not None):
            add(instrument, Sample(instrument.name, ours, value))
        if told is not None:
            add(known.INFO, Sample(known.INFO.name, {**ours, "version": look.version, "model": look.model}, 1.0))
        for sample in told or ():
            if sample.name != known.CACHE_CONFIG:
                instrument, name = _SHOWN[sample.name]
                labels = {RENAMED_LABELS.get(label, label): value for label, value in sample.labels.items()}
                add(instrument, Sample(name, {**labels, **ours}, sample.value))
            elif (tokens := sample.labels.get(known.CACHE_TOKENS, "")).isdecimal():
                add(known.CACHE, Sample(known.CACHE.name, ours, float(tokens)))
    order = [told.shown.name for told in TOLD]
    return [found[name] for name in (*(each.name for each in known.MADE), *order) if name in found]


def _made(look: Look, *, told: bool) -> Iterator[tuple[Instrument, float]]:
    yield known.UP, float(told)
    values: Mapping[Instrument, float | None] = {known.AGE: look.age}
    if told:
        values = {**values, known.ACCEPTANCE: look.acceptance, known.ACCEPTED_LENGTH: look.accepted_length}
    yield from ((instrument, value) for instrument, value in values.items() if value is not None)


def _told(text: str) -> list[Sample] | None:
    """``None`` when it is not what vLLM tells."""
    try:
        found = samples(text, _WANTED)
    except ValueError:
        return None
    return found if any(sample.name == known.GENERATED for sample in found) else None
