"""Decision: what happened between two samples, as one point of the history."""

from collections.abc import Mapping
from dataclasses import dataclass

from proxy import instruments as known
from proxy.overview.quantile import by_bound, quantile
from proxy.overview.sample import Labels, Sample
from proxy.record import WENT_WRONG, ServedBy

_REQUESTS, _TTFT, _TPOT = known.REQUESTS.shown, f"{known.TTFT.name}_bucket", f"{known.TPOT.name}_bucket"
_GENERATED = "duet_engine_generation_tokens_total"
_DRAFTS, _DRAFTED = "duet_engine_drafts_total", "duet_engine_draft_tokens_total"
_ACCEPTED = "duet_engine_accepted_tokens_total"
_PROMPTS, _SOURCES = "duet_engine_prompt_tokens_total", "duet_engine_prompt_tokens_by_source_total"
_USAGE, _QUEUED = "duet_engine_kv_cache_usage_ratio", "duet_engine_requests_waiting"
_RECEIVED = ("source", "external_kv_transfer")
_PREFILL = ("role", "prefill")
WANTED = frozenset(
    {
        *(_REQUESTS, _TTFT, _TPOT, known.INSIDE.name, known.WAITING.name),
        *(_GENERATED, _DRAFTS, _DRAFTED, _ACCEPTED, _PROMPTS, _SOURCES, _USAGE, _QUEUED),
    }
)
"""The samples that it is made of."""


@dataclass(frozen=True, slots=True)
class Point:
    """The time since the point before. Times are seconds, shares 0 to 1; ``None`` where nothing tells."""

    at: float
    """Its end, since the epoch."""
    requests_per_second: float
    failed_per_second: float
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
    in_flight: float | None
    waiting: float | None
    """For a place at the proxy or an engine."""


def point(before: Sample, now: Sample) -> Point:
    """Two samples of one clock, the later one last."""
    seconds = now.clock - before.clock
    requests = now.grown(before, _REQUESTS, from_zero=True)
    ttft = by_bound(now.grown(before, _TTFT, from_zero=True))
    tpot = by_bound(_by_token(now.grown(before, _TPOT, from_zero=True)))
    generated = _engines(before, now, _GENERATED)
    drafts, drafted, accepted = (_sum(_engines(before, now, name)) for name in (_DRAFTS, _DRAFTED, _ACCEPTED))
    return Point(
        at=now.at,
        requests_per_second=sum(requests.values()) / seconds,
        failed_per_second=sum(n for labels, n in requests.items() if dict(labels)["outcome"] in WENT_WRONG) / seconds,
        output_tokens_per_second=None if not generated else sum(generated.values()) / seconds,
        ttft_p50=quantile(0.5, ttft),
        ttft_p95=quantile(0.95, ttft),
        tpot_p50=quantile(0.5, tpot),
        tpot_p95=quantile(0.95, tpot),
        acceptance_rate=_ratio(accepted, drafted),
        mean_acceptance_length=None if (more := _ratio(accepted, drafts)) is None else 1 + more,
        kv_cache_usage=now.most(_USAGE),
        kv_received_share=_received(before, now),
        pd_share=_pd_share(requests),
        in_flight=now.total(known.INSIDE.name),
        waiting=_plus(now.total(known.WAITING.name), now.total(_QUEUED)),
    )


def _engines(before: Sample, now: Sample, name: str) -> dict[Labels, float]:
    """Of those that answer clients: prefill generates one token of each request, which decode generates again."""
    grown = now.grown(before, name, from_zero=False)
    return {labels: count for labels, count in grown.items() if _PREFILL not in labels}


def _received(before: Sample, now: Sample) -> float | None:
    sources = _engines(before, now, _SOURCES)
    received = {
        labels: count for labels, count in sources.items() if _RECEIVED in labels and ("role", "decode") in labels
    }
    prompts = {labels: n for labels, n in _engines(before, now, _PROMPTS).items() if ("role", "decode") in labels}
    return _ratio(_sum(received), _sum(prompts))


def _by_token(buckets: Mapping[Labels, float]) -> Mapping[Labels, float]:
    """Those whose answers told their tokens, if any did: of others only events are known."""
    exact = {labels: count for labels, count in buckets.items() if ("counted", "tokens") in labels}
    return exact if any(exact.values()) else buckets


def _pd_share(requests: Mapping[Labels, float]) -> float | None:
    by_path: dict[str, float] = {}
    for labels, count in requests.items():
        named = dict(labels)
        if named["endpoint"] != "other":
            by_path[named["path"]] = by_path.get(named["path"], 0.0) + count
    pd = by_path.get(ServedBy.PD, 0.0)
    return _ratio(pd, pd + by_path.get(ServedBy.AGGREGATED, 0.0))


def _sum(grown: Mapping[Labels, float]) -> float | None:
    return sum(grown.values()) if grown else None


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _plus(one: float | None, other: float | None) -> float | None:
    return other if one is None else one + (other or 0.0)
