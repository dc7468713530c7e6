"""The counters and histograms that requests write, on a registry that is passed in."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Set
from functools import cached_property
from http import HTTPStatus
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics import MetricWrapperBase

from proxy import instruments as known
from proxy.endpoint import Endpoint
from proxy.errors import ClientGone, EngineFailure, PrefillWithoutKV
from proxy.instrument import Instrument
from proxy.overview.failures import Failures, failure_of
from proxy.pair import Pair
from proxy.pool import Pool
from proxy.proof.proof import Proof
from proxy.record import WENT_WRONG, Outcome, Record, Retry, ServedBy

_STATUSES = {status: str(status) for status in (*map(int, HTTPStatus), ClientGone.status)}
OTHER = "other"
"""The label of a model that nobody serves: clients may write what they like."""

_BANDS = (0.0, 0.5, 1.0)
"""Of temperature: the upper bounds of bands, which are part of them."""


def _band(temperature: float) -> str:
    return next((f"{bound:g}" for bound in _BANDS if temperature <= bound), "above")


_SOON = 0.1
"""Seconds."""
_MANY = 256
"""Notes; they take less than a millisecond to write."""

M = TypeVar("M", bound=MetricWrapperBase)


class _Labelled(Generic[M]):
    """A metric whose labels are looked up once each: the library does it under a lock."""

    def __init__(self, metric: M, instrument: Instrument) -> None:
        self._metric = metric
        self._found: dict[tuple[str, ...], M] = {}
        self._instances = [place for place, label in enumerate(instrument.labels) if label in known.INSTANCES]

    def of(self, *labels: str) -> M:
        """That with these labels."""
        found = self._found.get(labels)
        if found is None:
            found = self._found[labels] = self._metric.labels(*labels)
        return found

    def keep(self, instances: Set[str]) -> None:
        """Drop what tells of others."""
        gone = [labels for labels in self._found if any(labels[place] not in instances for place in self._instances)]
        for labels in gone:
            del self._found[labels]
            self._metric.remove(*labels)


class _Served:
    """The metrics of one endpoint, path and model: found once, as hashing an enum takes longer than counting."""

    def __init__(self, metrics: "Metrics", labels: tuple[str, str, str]) -> None:
        self._metrics, self._labels = metrics, labels
        self._ends: dict[tuple[int, str], Counter] = {}

    def ended(self, status: int, outcome: Outcome) -> Counter:
        """Requests that ended so."""
        key = status, outcome.name  # whose hash is kept
        found = self._ends.get(key)
        if found is None:
            label = _STATUSES.get(status) or _class_of(status)
            found = self._ends[key] = self._metrics.requests.labels(*self._labels, label, outcome)
        return found

    @cached_property
    def duration(self) -> Histogram:
        """From the request to the end of its answer."""
        return self._metrics.duration.labels(*self._labels)

    @cached_property
    def ttft(self) -> Histogram:
        """To the first event."""
        return self._metrics.ttft.labels(*self._labels)

    @cached_property
    def pause(self) -> Histogram:
        """The longest in a stream."""
        return self._metrics.pause.labels(*self._labels)

    @cached_property
    def prompt_tokens(self) -> Counter:
        """As the answers tell."""
        return self._metrics.prompt_tokens.labels(*self._labels)

    @cached_property
    def completion_tokens(self) -> Counter:
        """As the answers tell."""
        return self._metrics.completion_tokens.labels(*self._labels)


class Metrics:
    """Writes them, many at a time: one by one, between all that a request does, costs five times as much.

    Whoever reads the registry calls :meth:`flush` before. Else they are written within ``_SOON``.
    """

    def __init__(
        self, registry: CollectorRegistry, pool: Pool, failures: Failures | None = None, *, forgets: bool = False
    ) -> None:
        """``pool``: whose models are told apart. ``failures``: where requests that went wrong are kept.

        ``forgets``: drop what tells of instances that are gone, as their names do not come back.
        """

        def plain(instrument: Instrument) -> Counter:
            return Counter(instrument.name, instrument.meaning, instrument.labels, registry=registry)

        def times(instrument: Instrument) -> Histogram:
            return Histogram(
                *(instrument.name, instrument.meaning, instrument.labels),
                registry=registry,
                buckets=instrument.buckets,
            )

        def counter(instrument: Instrument) -> _Labelled[Counter]:
            return _Labelled(plain(instrument), instrument)

        def histogram(instrument: Instrument) -> _Labelled[Histogram]:
            return _Labelled(times(instrument), instrument)

        self._pool = pool
        self._kept = failures or Failures()
        self._later: list[tuple[Callable[..., None], tuple[object, ...]]] = []
        self._sums: defaultdict[Counter, int] = defaultdict(int)
        self._served: dict[tuple[Endpoint, ServedBy | None, str], _Served] = {}
        self.requests = plain(known.REQUESTS)
        self.duration, self.ttft, self.pause = times(known.DURATION), times(known.TTFT), times(known.PAUSE)
        self.prompt_tokens, self.completion_tokens = plain(known.PROMPT_TOKENS), plain(known.COMPLETION_TOKENS)
        self._tpot = histogram(known.TPOT)
        self._usage_unknown = counter(known.USAGE_UNKNOWN)
        self._bypassed = counter(known.BYPASSED)
        self._drafted, self._accepted = counter(known.DRAFTED_TOKENS), counter(known.ACCEPTED_TOKENS)
        self._retries = counter(known.RETRIES)
        self._refused = counter(known.REFUSED)
        self._disconnects = counter(known.DISCONNECTS)
        self._handovers, self._handover = counter(known.HANDOVERS), histogram(known.HANDOVER)
        self._canaries = counter(known.CANARIES)
        self._failures, self._without_kv = counter(known.FAILURES), plain(known.WITHOUT_KV)
        self._opened, self._suspended = counter(known.BREAKER_OPENED), counter(known.PAIR_SUSPENDED)
        self._pool_requests, self._pool_fallbacks = counter(known.POOL_REQUESTS), counter(known.POOL_FALLBACKS)
        self._pool_ttft, self._pool_tpot = histogram(known.POOL_TTFT), histogram(known.POOL_TPOT)
        self._arm_requests, self._not_copied = counter(known.ARM_REQUESTS), counter(known.NOT_COPIED)
        self._arm_ttft, self._arm_tpot = histogram(known.ARM_TTFT), histogram(known.ARM_TPOT)
        self.waited = times(known.WAIT)
        self._handoff = times(known.HANDOFF)
        self.kv_stranded = plain(known.KV_STRANDED)
        self.kv_released = plain(known.KV_RELEASED)
        by_instance = (self._handovers, self._handover, self._canaries, self._failures, self._opened, self._suspended)
        self._by_instance = by_instance if forgets else ()
        self._instances = frozenset[str]()

    def model(self, asked: object) -> str:
        """The label of a model that a request asks for."""
        served = self._pool.models
        if asked is None and len(served) == 1:  # engines take their own model then
            return next(iter(served))
        return asked if isinstance(asked, str) and asked in served else OTHER

    def failed(self, failure: EngineFailure) -> None:
        """Count a failure of an instance."""
        self._failures.of(failure.instance, failure.kind).inc()
        if isinstance(failure, PrefillWithoutKV):
            self._without_kv.inc()

    def opened(self, instance: str) -> None:
        """Failures keep requests away from an instance."""
        self._opened.of(instance).inc()

    def suspended(self, pair: Pair) -> None:
        """A failed hand-over keeps requests away from a pair."""
        self._suspended.of(pair.prefill, pair.decode).inc()

    def handed_off(self, seconds: float) -> None:
        """Prefill has answered after so long."""
        self._note(self._handoff.observe, seconds)

    def handed_over(self, pair: Pair, *, well: bool, seconds: float | None = None) -> None:
        """Count what became of a hand-over, and how long it took where the answer is streamed."""
        self._note(self._handed_over, pair, well, seconds)

    def _handed_over(self, pair: Pair, well: bool, seconds: float | None) -> None:
        self._sums[self._handovers.of(pair.prefill, pair.decode, "ok" if well else "failed")] += 1
        if seconds is not None:
            self._handover.of(pair.prefill, pair.decode).observe(seconds)

    def canary(self, pair: Pair, proof: Proof) -> None:
        """Count what a canary has shown."""
        self._canaries.of(pair.prefill, pair.decode, proof.verdict).inc()

    def retried(self, step: Retry) -> None:
        """Somebody else is tried."""
        self._retries.of(step).inc()

    def fell_back(self, pool: str) -> None:
        """A request goes to another pool than this."""
        self._pool_fallbacks.of(pool).inc()

    def refused(self, reason: str) -> None:
        """A request was not taken; the reason is the name of an error."""
        self._refused.of(reason).inc()

    def finished(self, record: Record, status: int, outcome: Outcome, trace: str | None = None) -> None:
        """Count a request at its end, which nothing changes any more; ``trace`` is its id, if that is collected."""
        if outcome in WENT_WRONG:
            self._kept.add(failure_of(record, status, outcome))
        self._note(self._finished, record, status, outcome, trace, time.monotonic())

    def copied(self, record: Record, outcome: Outcome) -> None:
        """Count a copy of a request for the arm that it went to, and nowhere else."""
        self._note(self._of_arm, record, outcome, time.monotonic())

    def not_copied(self, pool: str) -> None:
        """No copy was made, as too many are under way."""
        self._not_copied.of(pool).inc()

    def _of_arm(self, record: Record, outcome: Outcome, now: float) -> None:
        if record.arm is None or record.fell_back_from is not None:
            return
        self._sums[self._arm_requests.of(record.arm, outcome)] += 1
        if record.ttft is not None:
            self._arm_ttft.of(record.arm).observe(record.ttft)
        tpot = record.tpot(now) if outcome is Outcome.OK else None
        if tpot is not None:
            self._arm_tpot.of(record.arm).observe(tpot)

    def flush(self) -> None:
        """Write what is noted."""
        noted, self._later = self._later, []
        for write, values in noted:
            write(*values)
        for counter, amount in self._sums.items():
            counter.inc(amount)
        self._sums.clear()
        instances = frozenset(member.instance.name for member in self._pool.members)
        if instances != self._instances:
            self._instances = instances
            for metric in self._by_instance:
                metric.keep(instances)

    def _note(self, write: Callable[..., None], *values: object) -> None:
        self._later.append((write, values))
        if len(self._later) == 1:
            asyncio.get_running_loop().call_later(_SOON, self.flush)
        elif len(self._later) >= _MANY:
            self.flush()

    def _finished(self, record: Record, status: int, outcome: Outcome, trace: str | None, now: float) -> None:
        key = record.endpoint, record.path, record.model
        served = self._served.get(key)
        labels = record.endpoint, record.path or "none", record.model
        if served is None:
            served = self._served[key] = _Served(self, labels)
        self._sums[served.ended(status, outcome)] += 1
        exemplar = None if trace is None else {"trace_id": trace}
        served.duration.observe(now - record.started, exemplar)
        if record.pool is not None:
            self._sums[self._pool_requests.of(record.pool, outcome)] += 1
        self._of_arm(record, outcome, now)
        if record.bypass is not None:
            self._bypassed.of(record.bypass).inc()
        if record.drafted is not None:
            band = _band(record.temperature)
            self._drafted.of(band).inc(record.drafted.drafted)
            self._accepted.of(band).inc(record.drafted.accepted)
        if outcome is Outcome.LEFT:
            self._disconnects.of(record.phase).inc()
        usage = record.usage
        if usage is not None:
            self._sums[served.prompt_tokens] += usage.prompt
            self._sums[served.completion_tokens] += usage.completion
        elif outcome is Outcome.OK and record.endpoint is not Endpoint.OTHER:
            self._usage_unknown.of(*labels).inc()
        if record.first_byte is None:
            return
        served.ttft.observe(record.first_byte - record.started, exemplar)
        if record.pool is not None:
            self._pool_ttft.of(record.pool).observe(record.first_byte - record.started)
        if record.longest_pause is not None:
            served.pause.observe(record.longest_pause)
        steps = record.events if usage is None else usage.completion - 1
        if outcome is Outcome.OK and record.has_one_choice and steps > 0:
            counted = "events" if usage is None else "tokens"
            tpot = (now - record.first_byte) / steps
            self._tpot.of(*labels, counted).observe(tpot)
            if record.pool is not None:
                self._pool_tpot.of(record.pool, counted).observe(tpot)


def _class_of(status: int) -> str:
    """An engine may answer any number."""
    return f"{status // 100}xx" if 100 <= status < 600 else OTHER
