"""Decision: what happened between two samples, as one point of the history."""

from collections.abc import Mapping
from dataclasses import dataclass

from proxy.endpoint import Endpoint
from proxy.overview.buckets import by_bound
from proxy.overview.engines import Work
from proxy.overview.sample import Sample
from proxy.overview.tally import REQUESTS, TPOT, TTFT, Values
from proxy.quantile import quantile
from proxy.record import WENT_WRONG, ServedBy


@dataclass(frozen=True, slots=True)
class Point:
    """The time since the point before. Times are seconds, shares 0 to 1; ``None`` where nothing tells."""

    at: float
    """Its end, since the epoch."""
    requests_per_second: float
    failed_per_second: float
    """Those without a whole answer that was not the client's doing: refused for want of room, too."""
    output_tokens_per_second: float | None
    """Of the engines that answer, those of canaries, too."""
    ttft_p50: float | None
    ttft_p95: float | None
    tpot_p50: float | None
    tpot_p95: float | None
    acceptance_rate: float | None
    mean_acceptance_length: float | None
    kv_cache_usage: float | None
    """Of the engine whose cache is the fullest."""
    kv_received_share: float | None
    """Of the prompt tokens of decode, the part whose KV came from prefill."""
    pd_share: float | None
    """Of the requests that were served on routes that generate."""
    in_flight: float
    """Requests of clients that have a place."""
    waiting: float
    """For a place at the proxy or an engine."""


def point(before: Sample, now: Sample) -> Point:
    """Two samples of one clock, the later one last."""
    seconds = now.clock - before.clock
    requests = now.grown(before, REQUESTS)
    ttft, tpot = by_bound(now.grown(before, TTFT)), by_bound(_by_token(now.grown(before, TPOT)))
    work, told = Work(before, now), [engine.readings for engine in now.engines.values()]
    return Point(
        at=now.at,
        requests_per_second=sum(requests.values()) / seconds,
        failed_per_second=sum(n for (*_, outcome), n in requests.items() if outcome in WENT_WRONG) / seconds,
        output_tokens_per_second=work.generated_per_second,
        ttft_p50=quantile(0.5, ttft),
        ttft_p95=quantile(0.95, ttft),
        tpot_p50=quantile(0.5, tpot),
        tpot_p95=quantile(0.95, tpot),
        acceptance_rate=work.acceptance,
        mean_acceptance_length=work.accepted_length,
        kv_cache_usage=max((each.usage for each in told), default=None),
        kv_received_share=work.received_share,
        pd_share=_pd_share(requests),
        in_flight=now.present.admitted,
        waiting=now.present.waiting + sum(each.waiting for each in told),
    )


def _by_token(buckets: Mapping[Values, float]) -> Mapping[Values, float]:
    """Those whose answers told their tokens, if any did: of others only events are known."""
    exact = {labels: count for labels, count in buckets.items() if labels[0] == "tokens"}
    return exact if any(exact.values()) else buckets


def _pd_share(requests: Mapping[Values, float]) -> float | None:
    by_path: dict[str, float] = {}
    for (endpoint, path, _), count in requests.items():
        if endpoint != Endpoint.OTHER:
            by_path[path] = by_path.get(path, 0.0) + count
    pd = by_path.get(ServedBy.PD, 0.0)
    served = pd + by_path.get(ServedBy.AGGREGATED, 0.0)
    return pd / served if served else None
