"""Every metric of the proxy, on a registry that is passed in. All labels have few values."""

import time
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from proxy.errors import EngineFailure, PrefillWithoutKV
from proxy.pool import Member, Pool
from proxy.record import Record
from proxy.topology import Role

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Metrics:
    """Counters and histograms that requests write; the gauges read the pool when they are scraped."""

    def __init__(self, registry: CollectorRegistry, pool: Pool) -> None:
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
            "duet_handoff_seconds", "Prefill legs that handed KV over.", registry=registry, buckets=_SECONDS
        )
        self._bypassed = Counter(
            "duet_pd_bypassed", "Requests served aggregated although PD is configured.", ("reason",), registry=registry
        )
        self._without_kv = Counter(
            "duet_prefill_without_kv", "Prefill answers without usable KV parameters.", registry=registry
        )
        self._failures = Counter(
            "duet_upstream_failures", "Failures of an instance.", ("instance", "kind"), registry=registry
        )
        self.client_disconnects = Counter(
            "duet_client_disconnects", "Clients that left before their answer was complete.", registry=registry
        )
        self._registry = registry
        _watch(pool, registry)

    def watch_queues(self, pool: Pool) -> None:
        """Show what the policy ``ttft`` steers by."""
        queue = Gauge(
            "duet_prefill_queue_seconds",
            "Estimated time until a prefill instance has computed all it was given.",
            ("instance",),
            registry=self._registry,
        )
        for member in pool.members:
            if member.instance.role is Role.PREFILL:
                queue.labels(member.instance.name).set_function(partial(_queue, member))

    def failed(self, failure: EngineFailure) -> None:
        """Count a failure of an instance."""
        self._failures.labels(failure.instance, failure.kind).inc()
        if isinstance(failure, PrefillWithoutKV):
            self._without_kv.inc()

    def finished(self, record: Record, status: int) -> None:
        """Count a request at its end."""
        path = record.path or "none"
        self._requests.labels(record.endpoint, path, status).inc()
        self._duration.labels(record.endpoint, path).observe(time.monotonic() - record.started)
        if record.first_byte is not None:
            self._ttft.labels(record.endpoint, path).observe(record.first_byte - record.started)
        if record.bypass is not None:
            self._bypassed.labels(record.bypass).inc()


def _watch(pool: Pool, registry: CollectorRegistry) -> None:
    in_flight = Gauge("duet_in_flight", "Requests in flight.", ("instance",), registry=registry)
    healthy = Gauge("duet_instance_healthy", "1 when probes say so.", ("instance", "role"), registry=registry)
    for member in pool.members:
        instance = member.instance
        in_flight.labels(instance.name).set_function(partial(_in_flight, member))
        healthy.labels(instance.name, instance.role).set_function(partial(_healthy, member))


def _in_flight(member: Member) -> float:
    return member.in_flight


def _healthy(member: Member) -> float:
    return member.healthy


def _queue(member: Member) -> float:
    return member.load.seconds(time.monotonic())
