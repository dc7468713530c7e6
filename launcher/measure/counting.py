"""Decision: looks at engines' metrics -> what they counted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from launcher.advice.measure import measured
from launcher.advice.metric_names import COUNTERS, GAUGES
from launcher.advice.window import Reading, Window
from launcher.measure.counted import Counted
from proxy import engine_instruments as vllm
from proxy.topology import Role

_WANTED = COUNTERS | GAUGES | {vllm.PROCESS_START}
_NAMES = {ours: theirs for told in vllm.TOLD for theirs, ours in told.samples.items() if theirs in _WANTED}


@dataclass(frozen=True, slots=True)
class Told:
    """One instance's reading on the proxy's page."""

    role: str
    reading: Reading


def of_proxy(page: str) -> Mapping[str, Told]:
    """By instance, what ``/metrics/engines`` of a Duet proxy tells, by vLLM's names; raises :class:`ValueError`."""
    found: dict[str, tuple[str, dict[tuple[str, frozenset[tuple[str, str]]], float]]] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if (name := _NAMES.get(sample.name)) is None:
                continue
            labels = dict(sample.labels)
            instance, role = labels.pop("engine", ""), labels.pop("role", "")
            found.setdefault(instance, (role, {}))[1][name, frozenset(labels.items())] = sample.value
    return {name: Told(role, Reading(values)) for name, (role, values) in found.items()}


def counted(windows: Mapping[str, Window], seconds: float, notes: Sequence[str]) -> Counted:
    """Of so many seconds. Windows are by instance."""
    seen = [each for each in windows.values() if each.looks]
    decoding = [each for each in seen if each.role in {Role.DECODE, Role.AGGREGATED}]
    drafts = _sum(decoding, vllm.DRAFTS)
    restarted = [name for name, each in windows.items() if each.restarts]
    again = [f"{', '.join(restarted)} began to count anew meanwhile (a restart)"] if restarted else []
    return Counted(
        seconds=seconds,
        generated=_sum(decoding, vllm.GENERATED),
        kv_received=_sum(decoding, vllm.PROMPT_TOKENS_BY_SOURCE, source="external_kv_transfer"),
        preemptions=_sum(seen, vllm.PREEMPTIONS),
        drafts=drafts,
        drafted=_sum(decoding, vllm.DRAFT_TOKENS),
        accepted=_sum(decoding, vllm.ACCEPTED),
        accepted_by_position=_by_position(decoding, drafts or 0.0),
        facts={name: value for name, value in measured(seen, seconds).items() if value is not None} if seen else {},
        notes=(*notes, *again),
    )


def _by_position(decoding: Sequence[Window], drafts: float) -> tuple[float, ...]:
    shares: list[float] = []
    while drafts and (accepted := _sum(decoding, vllm.ACCEPTED_BY_POSITION, position=str(len(shares)))) is not None:
        shares.append(accepted / drafts)
    return tuple(shares)


def _sum(windows: Iterable[Window], name: str, **labels: str) -> float | None:
    found = [value for each in windows if (value := each.increase(name, **labels)) is not None]
    return sum(found) if found else None
