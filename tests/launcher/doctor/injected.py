"""Faults of engines and networks, injected where they happen: into fake engines behind a real proxy."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proxy.reference import Reference, ReferenceAnswer
from proxy.settings import Admission, Alerts, Breaker, Canary, FailurePolicy, Leg, Settings, Timeouts
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import Duet, eventually

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
CALM = Settings(breaker=Breaker(pause=60, longest_pause=60))
"""What goes wrong stays so. A silence of 10 s means something: that of a busy machine is shorter."""
HISTOGRAM = (
    '# TYPE vllm:{name} histogram\nvllm:{name}_bucket{{le="0.02"}} {low}\nvllm:{name}_bucket{{le="2.0"}} {all}\n'
    'vllm:{name}_bucket{{le="+Inf"}} {all}\nvllm:{name}_count {all}\nvllm:{name}_sum {sum}\n'
)


def histogram(name: str, low: int, high: int) -> str:
    """So many observations of up to 20 ms, and so many of up to 2 s."""
    return HISTOGRAM.format(name=name, low=low, all=low + high, sum=low * 0.01 + high)


@dataclass(frozen=True)
class Injection:
    """Something that goes wrong."""

    named: set[str]
    """The problems that are named then, all of them."""
    inject: Callable[[Duet], Awaitable[None]]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the proxy."""
    before: Callable[[FakeEngine, FakeEngine], None] = lambda prefill, decode: None
    """Done to the engines before the proxy is started."""
    reference: Reference | None = None
    """The baseline's answers, if engines are compared with some."""


async def ask(duet: Duet, number: int = 1, **body: object) -> None:
    """So many requests, whatever comes of them."""
    for _ in range(number):
        await duet.client.post("/v1/completions", json=TEXT | body)


async def _nothing(duet: Duet) -> None:
    await ask(duet, 12)


async def _settled(duet: Duet) -> None:
    """The health monitor has seen what engines tell now."""
    before = [engine.looks for engine in duet.engines]

    async def seen() -> bool:
        await duet.ready()
        return all(engine.looks >= looks + 2 for engine, looks in zip(duet.engines, before, strict=True))

    await eventually(seen, True)


def _counts(**counts: int) -> Callable[[Duet], Awaitable[None]]:
    async def inject(duet: Duet) -> None:
        duet.prefill.counts |= counts
        await _settled(duet)

    return inject


def _drafts(accepted: int, tpot: str = "") -> Callable[[Duet], Awaitable[None]]:
    async def inject(duet: Duet) -> None:
        names = ("spec_decode_num_drafts", "spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens")
        duet.decode.counts |= dict(zip(names, (250, 1000, accepted), strict=True))
        duet.decode.more_metrics = lambda: tpot
        await _settled(duet)

    return inject


def _tells(text: str) -> Callable[[Duet], Awaitable[None]]:
    async def inject(duet: Duet) -> None:
        duet.decode.more_metrics = lambda: text
        await _settled(duet)

    return inject


async def _dies(duet: Duet) -> None:
    await duet.decode.stop()
    await eventually(lambda: duet.metric("duet_instance_healthy", engine="decode-0"), 0)


async def _freezes(duet: Duet) -> None:
    duet.decode.thawed.clear()
    asking = asyncio.create_task(ask(duet))
    await eventually(lambda: duet.metric("duet_engine_frozen", engine="decode-0"), 1)
    await eventually(lambda: duet.metric("duet_instance_healthy", engine="decode-0"), 0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def _fails_again(duet: Duet) -> None:
    duet.decode.faults.extend(Fault(status=500) for _ in range(6))
    await ask(duet, 6)


async def _breaks_streams(duet: Duet) -> None:
    duet.decode.faults.extend(Fault(cut_after=2) for _ in range(6))
    await ask(duet, 6, stream=True)


async def _hangs(duet: Duet) -> None:
    duet.decode.faults.append(Fault(hang=True))
    await ask(duet)


async def _slow(duet: Duet) -> None:
    gate = asyncio.Event()
    duet.decode.faults.append(Fault(wait=gate))
    asking = asyncio.create_task(ask(duet, stream=True))
    await duet.decode.until(lambda: duet.decode.running == 1)
    asyncio.get_running_loop().call_later(0.03, gate.set)
    await asking


async def _too_many(duet: Duet) -> None:
    gate = asyncio.Event()
    duet.prefill.faults.append(Fault(wait=gate))
    first = asyncio.create_task(ask(duet))
    await duet.prefill.until(lambda: duet.prefill.running == 1)
    await ask(duet)
    gate.set()
    await first


async def _handover_fails(duet: Duet) -> None:
    await ask(duet, 3)
    duet.decode.kv_fails = True
    await ask(duet)
    duet.decode.kv_fails = False


async def _runs_without_statistics(duet: Duet) -> None:
    duet.decode.instead["/metrics"] = (200, b"# nothing\n")
    await eventually(lambda: duet.engine_metric("duet_engine_up", engine="decode-0"), 0)


async def _is_not_scraped(duet: Duet) -> None:
    duet.url = "http://127.0.0.1:9"


async def _full(duet: Duet) -> None:
    duet.decode.usage = lambda: 0.99
    await _settled(duet)


async def _drifts(duet: Duet) -> None:
    await eventually(lambda: duet.metric("duet_reference_agreement", engine="decode-0"), 0.5)


def _set_drift(prefill: FakeEngine, decode: FakeEngine) -> None:
    decode.drift = 2


def _set(name: str) -> Callable[[FakeEngine, FakeEngine], None]:
    return lambda prefill, decode: setattr(decode, name, True)


def _alerts(**alerts: float) -> Settings:
    return replace(CALM, alerts=Alerts(**alerts))


_ANSWERS = Reference("fake", (ReferenceAnswer((1, 2), (3, 4, 5, 6)), ReferenceAnswer((7,), (8, 9))))
_CANARY = Canary(interval=3600)
_WAITING = (
    'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 7\nvllm:num_requests_running{engine="1"} 4\n'
)

INJECTIONS: Mapping[str, Injection] = {
    "nothing": Injection(set(), _nothing, {"canary": _CANARY}),
    "decode dies": Injection({"engine-down"}, _dies),
    "decode freezes": Injection({"engine-frozen"}, _freezes, {"settings": replace(CALM, frozen_after=0.4)}),
    "decode fails again and again": Injection(
        {"requests-failing", "pair-out-of-use", "fallback-share-high", "handovers-failing"}, _fails_again
    ),
    "decode breaks streams off": Injection({"requests-failing", "breaker-open"}, _breaks_streams),
    "decode hangs": Injection(
        {"requests-time-out", "requests-failing"},
        _hangs,
        {"timeouts": Timeouts(decode=Leg(first_byte=0.1), whole_answer=0.1), "policy": FailurePolicy.FAIL},
    ),
    "the first token is late": Injection({"ttft-high"}, _slow, {"settings": _alerts(ttft=0.02)}),
    "more requests than may be": Injection(
        {"requests-refused"}, _too_many, {"settings": replace(CALM, admission=Admission(concurrency=1, queue=0))}
    ),
    "decode recomputes": Injection(
        {"pd-silently-off", "canary-failing", "pair-out-of-use"},
        _settled,
        {"canary": _CANARY},
        _set("recomputes"),
    ),
    "decode gets other KV": Injection(
        {"canary-failing", "pair-out-of-use"}, _settled, {"canary": _CANARY}, _set("wrong_kv")
    ),
    "no canary for long": Injection(
        {"canary-overdue"}, _settled, {"canary": _CANARY, "settings": _alerts(canary_age=1e-6)}
    ),
    "one hand-over fails": Injection(
        {"handovers-failing", "fallback-share-high"},
        _handover_fails,
        {"canary": Canary(enabled=False)},
    ),
    "transfers are slow": Injection({"kv-transfer-slow"}, _tells(histogram("nixl_xfer_time_seconds", 2, 18))),
    "the first transfers are slow": Injection(set(), _tells(histogram("nixl_xfer_time_seconds", 0, 19))),
    "KV expires": Injection({"kv-expired"}, _counts(nixl_num_kv_expired_reqs=2)),
    "KV is read after it expired": Injection(
        {"kv-expired", "kv-read-late"}, _counts(nixl_num_kv_expired_reqs=2, nixl_num_notifications_after_expiry=1)
    ),
    "clients leave answers": Injection(set(), _counts(nixl_num_notifications_after_expiry=1)),
    "few drafts are accepted": Injection({"acceptance-low"}, _drafts(100)),
    "not enough drafts are accepted": Injection({"acceptance-below-break-even"}, _drafts(450)),
    "enough drafts are accepted": Injection(set(), _drafts(700)),
    "speculation is slower": Injection(
        {"speculation-net-negative"},
        _drafts(700, histogram("request_time_per_output_token_seconds", 9, 1)),
        {"settings": _alerts(tpot_without_speculation=0.05)},
    ),
    "the KV cache is full": Injection({"kv-cache-full"}, _full),
    "requests are preempted": Injection({"preemption-storm"}, _tells('vllm:num_preemptions_total{engine="1"} 9\n')),
    "requests wait though there is room": Injection({"batch-too-small"}, _tells(_WAITING)),
    "decode runs without statistics": Injection(
        {"engine-metrics-missing"}, _runs_without_statistics, {"settings": replace(CALM, frozen_after=2.0)}
    ),
    "decode answers otherwise than the baseline": Injection(
        {"quantization-drift"}, _drifts, before=_set_drift, reference=_ANSWERS
    ),
    "the proxy is asked at the wrong address": Injection({"target-missing"}, _is_not_scraped),
}
