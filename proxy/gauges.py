"""Gauges that are read when they are scraped: of a pool's instances and pairs, which may change, and of the door."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy import instruments as known
from proxy.admission import Admission
from proxy.breaker import State
from proxy.instrument import Instrument
from proxy.pair import Pair
from proxy.pool import Member, Pool
from proxy.pools import by_name
from proxy.proof.proof import Verdict
from proxy.settings import Alerts
from proxy.topology import Role


def _queue(member: Member, now: float) -> float | None:
    return member.load.seconds(now) if member.instance.role is Role.PREFILL else None


def _received_share(member: Member, _: float) -> float | None:
    return member.recently.received_share if member.instance.role is Role.DECODE else None


def _proven_at(pair: Pair, _: float) -> float | None:
    return pair.proof.at if pair.proof is not None and pair.proof.verdict is Verdict.PROVEN else None


def _speed(pair: Pair, _: float) -> float | None:
    return pair.proof.bytes_per_second if pair.proof is not None and pair.proof.verdict is Verdict.PROVEN else None


_OF_MEMBERS: Mapping[Instrument, Callable[[Member, float], float | None]] = {
    known.IN_FLIGHT: lambda member, _: member.in_flight,
    known.HEALTHY: lambda member, _: member.healthy,
    known.INSTANCE_DRAINING: lambda member, _: member.drained,
    known.BREAKER: lambda member, now: member.breaker.state(now) is State.OPEN,
    known.FROZEN: lambda member, _: member.progress.frozen,
    known.SHARE: _received_share,
    known.REFERENCE: lambda member, _: member.agreement,
    known.INSTANCE_POOL: lambda member, _: 1.0,
}
_OF_PAIRS: Mapping[Instrument, Callable[[Pair, float], float | None]] = {
    known.PAIR_BREAKER: lambda pair, now: pair.breaker.state(now) is State.OPEN,
    known.USABLE: lambda pair, now: pair.admits(now),
    known.PROVEN: _proven_at,
    known.SPEED: _speed,
    known.PROOF_AGE: lambda pair, _: None if pair.proof is None else max(0.0, time.time() - pair.proof.at),
}
_OF_THE_DOOR: Mapping[Instrument, Callable[[Admission], float]] = {
    known.INSIDE: lambda door: door.in_flight,
    known.WAITING: lambda door: door.waiting,
    known.HELD: lambda door: door.held,
    known.DRAINING: lambda door: door.closing,
}


class Gauges(Collector):
    """The present of one process."""

    def __init__(
        self,
        pool: Pool,
        door: Admission,
        alerts: Alerts,
        *,
        queues: bool,
        known_at: Callable[[], float] | None = None,
    ) -> None:
        """``queues``: show how long those of prefill are, when they are estimated.

        ``known_at``: when it was last told which instances there are, by ``time.monotonic``, if they are discovered.
        """
        self._known_at = known_at
        self._pool = pool
        self._door = door
        self._alerts = alerts
        self._of_members = {**_OF_MEMBERS, **({known.QUEUE: _queue} if queues else {})}

    def collect(self) -> Iterator[Metric]:
        """All of them, as they are now."""
        now = time.monotonic()
        for instrument, of_member in self._of_members.items():
            family = _family(instrument)
            for member in self._pool.members:
                instance = member.instance
                names = {"engine": instance.name, "decode": instance.name, "role": instance.role}
                names["pool"] = by_name(instance.pool)
                if instrument is not known.INSTANCE_POOL or len(self._pool.names) > 1:
                    _add(family, [names[label] for label in instrument.labels], of_member(member, now))
            yield family
        pairs = self._pool.pairs()
        for instrument, of_pair in _OF_PAIRS.items():
            family = _family(instrument)
            for pair in pairs:
                _add(family, [pair.prefill, pair.decode], of_pair(pair, now))
            yield family
        yield _verdicts(pairs)
        yield _silently_off(pairs)
        for instrument, of_door in _OF_THE_DOOR.items():
            family = _family(instrument)
            _add(family, [], of_door(self._door))
            yield family
        if self._known_at is not None:
            family = _family(known.DISCOVERY_AGE)
            _add(family, [], now - self._known_at())
            yield family
        family = _family(known.THRESHOLD)
        for alert, threshold in asdict(self._alerts).items():
            _add(family, [alert], threshold)
        yield family


def _verdicts(pairs: list[Pair]) -> GaugeMetricFamily:
    family = _family(known.VERDICT)
    for pair in pairs:
        if pair.proof is not None:
            for verdict in Verdict:
                _add(family, [pair.prefill, pair.decode, verdict], pair.proof.verdict is verdict)
    return family


def _silently_off(pairs: list[Pair]) -> GaugeMetricFamily:
    """By decode instance: one pair is enough."""
    off: dict[str, bool] = {}
    for pair in pairs:
        recomputed = pair.proof is not None and pair.proof.verdict is Verdict.RECOMPUTED
        off[pair.decode] = off.get(pair.decode, False) or recomputed
    family = _family(known.SILENTLY_OFF)
    for name, value in off.items():
        _add(family, [name], value)
    return family


def _family(instrument: Instrument) -> GaugeMetricFamily:
    return GaugeMetricFamily(instrument.name, instrument.meaning, labels=instrument.labels)


def _add(family: GaugeMetricFamily, labels: list[str], value: float | None) -> None:
    if value is not None:
        family.add_metric(labels, value)
