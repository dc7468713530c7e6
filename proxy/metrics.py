"""Every metric of the proxy, on a registry that is passed in. All labels have few values."""

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy.breaker import State
from proxy.endpoint import Endpoint
from proxy.errors import EngineFailure, PrefillWithoutKV
from proxy.pair import Pair
from proxy.pool import Pool
from proxy.proof.proof import Proof, Verdict
from proxy.record import Record
from proxy.topology import Role

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

_ENGINES_COUNTS = (
    ("failed_transfers", "duet_kv_failed_transfers", "transfers that failed."),
    ("expired", "duet_kv_expired", "KV caches that nobody took before their lease ended."),
    ("late", "duet_kv_read_late", "KV caches that were read after their lease: the answers may be wrong."),
)


class Metrics:
    """Counters and histograms that requests write; the gauges are read when they are scraped."""

    def __init__(self, registry: CollectorRegistry, pool: Pool, *, queues: bool) -> None:
        """``queues``: show how long those of prefill are, when they are estimated."""
        self._found: dict[tuple[Endpoint, str, int], tuple[Counter, Histogram, Histogram]] = {}
        by_path = ("endpoint", "path")
        self._requests = Counter("duet_requests", "Finished requests.", (*by_path, "status"), registry=registry)
        self._duration = Histogram(
            "duet_request_duration_seconds", "Request to end of answer.", by_path, registry=registry, buckets=_SECONDS
        )
        self._ttft = Histogram(
            "duet_ttft_seconds",
            "Request to first event of a streamed answer.",
            by_path,
            registry=registry,
            buckets=_SECONDS,
        )
        self.handoff = Histogram(
            "duet_handoff_seconds",
            "From sending a request to prefill until its answer that hands KV over.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._bypassed = Counter(
            "duet_pd_bypassed", "Requests served aggregated although PD is configured.", ("reason",), registry=registry
        )
        self._handovers = Counter(
            "duet_handovers",
            "KV caches that decode was asked to take over, by outcome.",
            ("prefill", "decode", "outcome"),
            registry=registry,
        )
        self._handover = Histogram(
            "duet_handover_seconds",
            "From sending a request with prefill's KV to decode until the first event of its streamed answer.",
            ("prefill", "decode"),
            registry=registry,
            buckets=_SECONDS,
        )
        self._canaries = Counter(
            "duet_canaries", "Canaries through a pair, by verdict.", ("prefill", "decode", "verdict"), registry=registry
        )
        self._without_kv = Counter(
            "duet_prefill_without_kv", "Prefill answers without usable KV parameters.", registry=registry
        )
        self._failures = Counter(
            "duet_upstream_failures", "Failures of an instance.", ("instance", "kind"), registry=registry
        )
        self.refused = Counter(
            "duet_refused", "Requests that were not taken, by reason.", ("reason",), registry=registry
        )
        self.kv_stranded = Counter(
            "duet_kv_stranded",
            "KV caches that nobody took over or could be asked to free: prefill keeps them until their lease ends.",
            registry=registry,
        )
        self.kv_released = Counter(
            "duet_kv_released", "KV caches that nobody took over and that prefill was told to free.", registry=registry
        )
        self.client_disconnects = Counter(
            "duet_client_disconnects", "Clients that left before their answer was complete.", registry=registry
        )
        registry.register(_PoolCollector(pool, queues=queues))

    def _of(self, endpoint: Endpoint, path: str, status: int) -> tuple[Counter, Histogram, Histogram]:
        """The library looks labels up under a lock: so they are looked up once."""
        key = (endpoint, path, status)
        found = self._found.get(key)
        if found is None:
            labels = (endpoint, path)
            found = (self._requests.labels(*key), self._duration.labels(*labels), self._ttft.labels(*labels))
            self._found[key] = found
        return found

    def failed(self, failure: EngineFailure) -> None:
        """Count a failure of an instance."""
        self._failures.labels(failure.instance, failure.kind).inc()
        if isinstance(failure, PrefillWithoutKV):
            self._without_kv.inc()

    def handed_over(self, pair: Pair, *, well: bool, seconds: float | None = None) -> None:
        """Count what became of a hand-over, and how long it took where the answer is streamed."""
        self._handovers.labels(pair.prefill, pair.decode, "ok" if well else "failed").inc()
        if seconds is not None:
            self._handover.labels(pair.prefill, pair.decode).observe(seconds)

    def canary(self, pair: Pair, proof: Proof) -> None:
        """Count what a canary has shown."""
        self._canaries.labels(pair.prefill, pair.decode, proof.verdict).inc()

    def finished(self, record: Record, status: int) -> None:
        """Count a request at its end."""
        path = record.path or "none"
        requests, duration, ttft = self._of(record.endpoint, path, status)
        requests.inc()
        duration.observe(time.monotonic() - record.started)
        if record.first_byte is not None:
            ttft.observe(record.first_byte - record.started)
        if record.bypass is not None:
            self._bypassed.labels(record.bypass).inc()


class _PoolCollector(Collector):
    """Gauges that are read from the pool when they are scraped: its instances may change."""

    def __init__(self, pool: Pool, *, queues: bool) -> None:
        self._pool = pool
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        """The instances and pairs as they are now."""
        now = time.monotonic()
        in_flight = GaugeMetricFamily("duet_in_flight", "Requests in flight.", labels=("instance",))
        healthy = GaugeMetricFamily("duet_instance_healthy", "1 when probes say so.", labels=("instance", "role"))
        draining = GaugeMetricFamily("duet_instance_draining", "1 when it gets no new requests.", labels=("instance",))
        breaker = GaugeMetricFamily("duet_breaker_open", "1 when failures keep requests away.", labels=("instance",))
        pairs = GaugeMetricFamily(
            "duet_pair_breaker_open", "1 when failed hand-overs keep requests away.", labels=("prefill", "decode")
        )
        usable = GaugeMetricFamily(
            "duet_pair_usable", "1 when requests may go this way, if both serve.", labels=("prefill", "decode")
        )
        proven = GaugeMetricFamily(
            "duet_pair_proven_timestamp_seconds",
            "When a canary came through last, if the last one did.",
            labels=("prefill", "decode"),
        )
        speed = GaugeMetricFamily(
            "duet_pair_kv_bytes_per_second",
            "Of the last canary's KV, where the engines count it; large prompts are faster.",
            labels=("prefill", "decode"),
        )
        silent = GaugeMetricFamily(
            "duet_pd_silently_off",
            "1 when an instance answers hand-overs but computes the prompts itself.",
            labels=("decode",),
        )
        share = GaugeMetricFamily(
            "duet_kv_received_share",
            "Of the last minute's prompt tokens, canaries' too, the part whose KV came from another instance.",
            labels=("decode",),
        )
        counts = {
            field: GaugeMetricFamily(name, f"As the engine itself counts: {what}", labels=("instance",))
            for field, name, what in _ENGINES_COUNTS
        }
        queue = GaugeMetricFamily(
            "duet_prefill_queue_seconds",
            "Estimated time until a prefill instance has computed all it was given: what the policy ttft steers by.",
            labels=("instance",),
        )
        for member in self._pool.members:
            name = member.instance.name
            in_flight.add_metric((name,), member.in_flight)
            healthy.add_metric((name, member.instance.role), member.healthy)
            draining.add_metric((name,), member.draining)
            breaker.add_metric((name,), member.breaker.state(now) is State.OPEN)
            if member.share.value is not None:
                share.add_metric((name,), member.share.value)
            if member.readings is not None:
                for field, family in counts.items():
                    family.add_metric((name,), getattr(member.readings, field))
            if member.instance.role is Role.PREFILL and self._queues:
                queue.add_metric((name,), member.load.seconds(now))
        silently_off: dict[str, bool] = {}
        for pair in self._pool.pairs():
            names, proof = (pair.prefill, pair.decode), pair.proof
            pairs.add_metric(names, pair.breaker.state(now) is State.OPEN)
            usable.add_metric(names, pair.admits(now))
            off = proof is not None and proof.verdict is Verdict.RECOMPUTED
            silently_off[pair.decode] = silently_off.get(pair.decode, False) or off
            if proof is not None and proof.verdict is Verdict.PROVEN:
                proven.add_metric(names, proof.at)
                if proof.bytes_per_second is not None:
                    speed.add_metric(names, proof.bytes_per_second)
        for name, off in silently_off.items():
            silent.add_metric((name,), off)
        yield from (in_flight, healthy, draining, breaker, pairs, usable, proven, speed, silent, share)
        yield from counts.values()
        yield from [queue] if self._queues else []
