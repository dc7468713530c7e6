"""Decision: windows over the instances of a deployment -> facts. Quantiles are estimates from histograms' buckets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from launcher.advice import metric_names as names
from launcher.advice.facts import FACTS
from launcher.advice.window import Reading, Window, quantile
from proxy import engine_instruments as vllm
from proxy.topology import Role

_PROXY = "proxy"


def requests(windows: Iterable[Window]) -> float | None:
    """How many ended; by the proxy's count, for engines also count canaries. ``None``: nobody tells."""
    windows = [*windows]
    proxy = [window for window in _of(windows, _PROXY) if window.looks]
    if proxy:  # what it has never counted it does not show
        return _sum(proxy, names.PROXY_REQUESTS) or 0.0
    return _sum(_of(windows, Role.DECODE, Role.AGGREGATED), vllm.ENDED)


def idle(windows: Iterable[Window]) -> bool:
    """Nothing ended, and nothing is on its way at last: there is nothing to judge."""
    windows = [*windows]
    on_its_way = [each.looks[-1].sum(names.IN_FLIGHT) for each in _of(windows, _PROXY) if each.looks]
    return requests(windows) == 0 and not any(on_its_way)


def measured(windows: Sequence[Window], seconds: float) -> Mapping[str, float | None]:
    """The facts of so many seconds, by their names; ``None`` for what the instances do not tell."""
    proxy = _of(windows, _PROXY)
    engines = [each for each in windows if each.role != _PROXY]
    generating = _of(windows, Role.DECODE, Role.AGGREGATED)
    computing = _of(windows, Role.PREFILL, Role.AGGREGATED)
    ended = requests(windows)
    moved, moving = _sum(engines, f"{vllm.TRANSFERRED}_sum"), _sum(engines, f"{vllm.TRANSFER_TIME}_sum")
    received = _sum(generating, vllm.PROMPT_TOKENS_BY_SOURCE, source="external_kv_transfer")
    accepted = _sum(generating, vllm.ACCEPTED)
    extra = _over(accepted, _sum(generating, vllm.DRAFTS))
    speed = _over(moved, moving)
    usage = [value for each in engines for value in each.gauges(lambda look: look.most(vllm.USAGE))]
    running = [value for each in generating if (value := each.mean(vllm.RUNNING)) is not None]
    facts: dict[str, float | None] = {
        "requests": ended,
        "request_rate": _over(ended, seconds),
        "generation_rate": _over(_sum(generating, vllm.GENERATED), seconds),
        "concurrency": _means(engines, _in_the_engine),
        "batch": max(running, default=None),
        "waiting": _means(engines, _waiting),
        "kv_cache_usage": max(usage, default=None),
        "preempted_share": _over(_sum(engines, vllm.PREEMPTIONS), ended),
        "prefix_hit_rate": _over(_sum(computing, vllm.PREFIX_HITS), _sum(computing, vllm.PREFIX_QUERIES)),
        "acceptance": _over(accepted, _sum(generating, vllm.DRAFT_TOKENS)),
        "acceptance_length": None if extra is None else 1 + extra,
        "pd_share": _pd_share(proxy),
        "kv_bytes_per_token": _over(moved, received) or None,
        "interconnect": None if not speed else speed / 1e9,
        **_quantiles("prompt_tokens", vllm.REQUEST_PROMPT, generating, 50, 95),
        **_quantiles("output_tokens", vllm.REQUEST_OUTPUT, generating, 50, 95),
        **_quantiles("queue_time", vllm.QUEUE, computing, 50, 95),
        **_quantiles("prefill_time", vllm.PREFILL_TIME, computing, 50, 95),
        **_quantiles("itl", vllm.ITL, generating, 50, 95, 99),
        **_quantiles("tpot", vllm.TPOT, generating, 50, 95),
        **_quantiles("kv_transfer_time", vllm.TRANSFER_TIME, engines, 50, 95),
        **_ttft(proxy, generating, computing),
    }
    return {name: None if value is None else FACTS[name].within(value) for name, value in facts.items()}


def _pd_share(proxy: Sequence[Window]) -> float | None:
    """Of the requests that were served."""
    handed_over = _sum(proxy, names.PROXY_REQUESTS, path="pd") or 0.0
    return _over(handed_over, handed_over + (_sum(proxy, names.PROXY_REQUESTS, path="aggregated") or 0.0))


def _ttft(
    proxy: Sequence[Window], generating: Sequence[Window], computing: Sequence[Window]
) -> Mapping[str, float | None]:
    """The proxy's; an engine's only where it computes the prompt itself, for decode's begins after prefill."""
    told = _quantiles("ttft", names.PROXY_TTFT, proxy, 50, 95)
    alone = all(each.role == Role.AGGREGATED for each in (*generating, *computing))
    if alone and None in told.values():
        return _quantiles("ttft", vllm.TTFT, generating, 50, 95)
    return told


def _quantiles(fact: str, histogram: str, windows: Iterable[Window], *percents: int) -> Mapping[str, float | None]:
    parts = [window.buckets(histogram) for window in windows]
    return {f"{fact}_p{percent}": quantile(percent / 100, parts) for percent in percents}


def _in_the_engine(look: Reading) -> float | None:
    running, waiting = look.sum(vllm.RUNNING), look.sum(vllm.WAITING)
    return None if running is None else running + (waiting or 0.0)


def _waiting(look: Reading) -> float | None:
    """For room in the engine, not for KV that is on its way."""
    by_reason = look.sum(vllm.WAITING_BY_REASON, reason="capacity")
    return look.sum(vllm.WAITING) if by_reason is None else by_reason


def _means(windows: Iterable[Window], value: Callable[[Reading], float | None]) -> float | None:
    """The sum of the instances' means."""
    found = [gauges for window in windows if (gauges := window.gauges(value))]
    return sum(fmean(gauges) for gauges in found) if found else None


def _of(windows: Iterable[Window], *roles: str) -> list[Window]:
    return [window for window in windows if window.role in roles]


def _sum(windows: Iterable[Window], name: str, **labels: str) -> float | None:
    found = [value for window in windows if (value := window.increase(name, **labels)) is not None]
    return sum(found) if found else None


def _over(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


def canaries(windows: Iterable[Window]) -> float | None:
    """How many the proxy sent."""
    return _sum(_of(windows, _PROXY), names.CANARIES)
