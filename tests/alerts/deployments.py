"""Deployments of a real proxy and fake engines, each with its own troubles, that are there and then gone again."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from proxy.config import ProxyConfig
from proxy.reference import Reference, ReferenceAnswer, dump
from proxy.settings import Alerts, Canary, FailurePolicy, Settings
from proxy.settings import Reference as Where
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import topology_of
from tests.proxy.program import Program, running

_PAUSE = 0.4
"""Seconds between two requests of a deployment's traffic."""
_FAST = Settings(probe_interval=0.5, frozen_after=2.0)
_OFTEN = Canary(interval=1.0)
_NEVER = Canary(enabled=False)
_ANSWERS = Reference("fake", (ReferenceAnswer((1, 2), (3, 4, 5, 6)), ReferenceAnswer((7,), (8, 9))))

Expected = frozenset[tuple[str, str]]
"""Alerts and whom they are about: an engine, a pair's decode engine, or nobody."""


@dataclass
class Deployment:
    """A proxy and its engines, by their names."""

    engines: dict[str, FakeEngine]
    proxy: Program
    proves: bool = False
    """Whether canaries are asked for, beside the traffic."""

    @property
    def address(self) -> str:
        """Host and port of the proxy."""
        url = self.proxy.client.base_url
        return f"{url.host}:{url.port}"


@dataclass(frozen=True)
class Story:
    """What happens to a deployment, and which alerts have to fire."""

    job: str
    roles: tuple[str, ...]
    expected: Expected
    begin: Callable[[Deployment], object] = lambda _: None
    end: Callable[[Deployment], object] = lambda _: None
    settings: Settings = _FAST
    canary: Canary = _OFTEN
    may_follow: frozenset[str] = frozenset()
    """Alerts that the same trouble may bring, too."""
    is_compared: bool = False
    """Its engines are, with reference answers."""


class Counted:
    """What an engine counts that speculates badly, has no room and moves KV slowly; more at each look."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> str:
        """More of ``/metrics``."""
        self.looks += 1
        label = 'engine="0",model_name="fake"'
        samples = {
            "spec_decode_num_drafts_total": 50,
            "spec_decode_num_draft_tokens_total": 100,
            "spec_decode_num_accepted_tokens_total": 20,
            "request_time_per_output_token_seconds_sum": 0.4,
            "request_time_per_output_token_seconds_count": 10,
            'request_time_per_output_token_seconds_bucket{le="0.05"': 10,
            'request_time_per_output_token_seconds_bucket{le="+Inf"': 10,
            'inter_token_latency_seconds_bucket{le="0.05"': 10,
            'inter_token_latency_seconds_bucket{le="+Inf"': 10,
            'spec_decode_num_accepted_tokens_per_pos_total{position="0"': 15,
            'spec_decode_num_accepted_tokens_per_pos_total{position="1"': 5,
            'request_success_total{finished_reason="stop"': 1,
            'nixl_xfer_time_seconds_bucket{le="0.05"': 0,
            'nixl_xfer_time_seconds_bucket{le="0.2"': 10,
            'nixl_xfer_time_seconds_bucket{le="+Inf"': 10,
            "nixl_xfer_time_seconds_count": 10,
        }
        lines = [
            f"vllm:{name}{',' if '{' in name else '{'}{label}}} {step * self.looks}" for name, step in samples.items()
        ]
        return "\n".join(lines) + "\n"


class Growing(dict[str, int]):
    """Counters of an engine of which one more is there at each look."""

    is_over = False

    def items(self):
        """As they are now."""
        if not self.is_over:
            self.update({name: count + 1 for name, count in super().items()})
        return super().items()


async def _one_dies_one_freezes_one_is_mute(deployment: Deployment) -> None:
    engines = deployment.engines
    engines["decode-2"].thawed.clear()
    engines["decode-3"].instead["/metrics"] = (404, b"")
    await engines["decode-1"].stop()


async def _they_are_back(deployment: Deployment) -> None:
    engines = deployment.engines
    engines["decode-2"].thawed.set()
    del engines["decode-3"].instead["/metrics"]
    await engines["decode-1"].start()


def _links_break(deployment: Deployment) -> None:
    deployment.engines["decode-1"].wrong_kv = True
    deployment.engines["decode-2"].kv_fails = True
    deployment.engines["decode-3"].recomputes = True


def _links_work(deployment: Deployment) -> None:
    deployment.engines["decode-1"].wrong_kv = False
    deployment.engines["decode-2"].kv_fails = False
    deployment.engines["decode-3"].recomputes = False


def _no_kv_arrives(deployment: Deployment, *, arrives: bool = False) -> None:
    deployment.engines["decode-0"].kv_fails = not arrives


def _all_fail(deployment: Deployment) -> None:
    deployment.engines["aggregated-0"].instead["/v1/completions"] = (500, b"{}")


def _none_fails(deployment: Deployment) -> None:
    del deployment.engines["aggregated-0"].instead["/v1/completions"]


def _engines_complain(deployment: Deployment) -> None:
    decode, prefill = deployment.engines["decode-0"], deployment.engines["prefill-0"]
    decode.counts = Growing(num_preemptions=0)
    decode.usage = lambda: 0.99
    decode.more_metrics = Counted()
    prefill.counts = Growing(nixl_num_kv_expired_reqs=0, nixl_num_notifications_after_expiry=0)


def _engines_are_content(deployment: Deployment) -> None:
    decode, prefill = deployment.engines["decode-0"], deployment.engines["prefill-0"]
    for counts in (decode.counts, prefill.counts):
        counts.is_over = True
    decode.usage = lambda: 0.1
    seen = Counted()
    seen.looks = decode.more_metrics.looks - 1
    text = seen()
    decode.more_metrics = lambda: text


def _look(deployment: Deployment) -> None:
    deployment.proves = True


def _drift(deployment: Deployment, places: int = 2) -> None:
    deployment.engines["decode-0"].drift = places


def _slow(deployment: Deployment, pace: float = 0.1) -> None:
    deployment.engines["decode-0"].pace = pace


STORIES = (
    Story("calm", ("prefill", "decode"), frozenset()),
    Story(
        "engines",
        ("prefill", "decode", "decode", "decode", "decode"),
        frozenset(
            {
                ("DuetEngineDown", "decode-1"),
                ("DuetEngineFrozen", "decode-2"),
                ("DuetEngineMetricsMissing", "decode-3"),
            }
        ),
        _one_dies_one_freezes_one_is_mute,
        _they_are_back,
        may_follow=frozenset({"DuetFallbackShareHigh", "DuetBreakerOpen", "DuetCanaryOverdue", "DuetTTFTHigh"}),
    ),
    Story(
        "links",
        ("prefill", "decode", "decode", "decode", "decode"),
        frozenset(
            {
                ("DuetCanaryFailing", "decode-1"),
                ("DuetPairOutOfUse", "decode-1"),
                ("DuetCanaryFailing", "decode-2"),
                ("DuetPairOutOfUse", "decode-2"),
                ("DuetPDSilentlyOff", "decode-3"),
                ("DuetPairOutOfUse", "decode-3"),
            }
        ),
        _links_break,
        _links_work,
    ),
    Story(
        "unproven",
        ("prefill", "decode"),
        frozenset({("DuetHandoversFailing", "decode-0"), ("DuetFallbackShareHigh", "")}),
        _no_kv_arrives,
        lambda deployment: _no_kv_arrives(deployment, arrives=True),
        canary=_NEVER,
        may_follow=frozenset({"DuetBreakerOpen", "DuetPairOutOfUse"}),
    ),
    Story(
        "answers",
        ("aggregated",),
        frozenset({("DuetRequestsFailing", ""), ("DuetBreakerOpen", "aggregated-0")}),
        _all_fail,
        _none_fails,
        # Its counters stand still, too, and it refuses a request for one token: it would soon be taken for frozen.
        settings=replace(_FAST, failure_policy=FailurePolicy.FAIL, frozen_after=600.0),
    ),
    Story(
        "counters",
        ("prefill", "decode"),
        frozenset(
            {
                ("DuetKVExpired", "prefill-0"),
                ("DuetKVReadLate", "prefill-0"),
                ("DuetKVCacheFull", "decode-0"),
                ("DuetPreemptionStorm", "decode-0"),
                ("DuetKVTransferSlow", "decode-0"),
                ("DuetAcceptanceLow", "decode-0"),
                ("DuetAcceptanceBelowBreakEven", "decode-0"),
                ("DuetSpeculationNetNegative", "decode-0"),
            }
        ),
        _engines_complain,
        _engines_are_content,
        settings=replace(_FAST, alerts=Alerts(tpot_without_speculation=0.02)),
        may_follow=frozenset({"DuetFallbackShareHigh", "DuetPairOutOfUse"}),
    ),
    Story(
        "slow",
        ("prefill", "decode"),
        frozenset({("DuetTTFTHigh", "")}),
        _slow,
        lambda deployment: _slow(deployment, 0.0),
        settings=replace(_FAST, alerts=Alerts(ttft=0.08)),
    ),
    Story(
        "quantized",
        ("prefill", "decode"),
        frozenset({("DuetQuantizationDrift", "decode-0")}),
        _drift,
        lambda deployment: _drift(deployment, 0),
        is_compared=True,
    ),
    Story(
        "unlooked",
        ("prefill", "decode"),
        frozenset({("DuetCanaryOverdue", "decode-0")}),
        end=_look,
        settings=replace(_FAST, alerts=Alerts(canary_age=10.0)),
        canary=Canary(interval=3600),
    ),
    Story(
        "unseen",
        ("prefill", "decode"),
        frozenset({("DuetTargetMissing", "")}),
        lambda deployment: os.kill(deployment.proxy.pid, signal.SIGSTOP),
        lambda deployment: os.kill(deployment.proxy.pid, signal.SIGCONT),
    ),
)


@asynccontextmanager
async def deployed(story: Story, folder: Path) -> AsyncIterator[Deployment]:
    """Runs it, with traffic."""
    engines = [FakeEngine(role) for role in story.roles]
    async with AsyncExitStack() as stack:
        for engine in engines:
            await stack.enter_async_context(engine)
        topology = topology_of(engines)
        config = ProxyConfig(topology, _settings(story, folder))
        proxy = await stack.enter_async_context(running(config, folder, canaries=True))
        named = {each.name: engine for each, engine in zip(topology.instances, engines, strict=True)}
        deployment = Deployment(named, proxy)
        traffic = asyncio.create_task(_traffic(deployment))
        try:
            yield deployment
        finally:
            traffic.cancel()
            await asyncio.gather(traffic, return_exceptions=True)


def _settings(story: Story, folder: Path) -> Settings:
    settings = replace(story.settings, canary=story.canary)
    if not story.is_compared:
        return settings
    file = folder / "answers.json"
    file.write_text(dump(_ANSWERS))
    return replace(settings, reference=Where(str(file), interval=1.0))


async def _traffic(deployment: Deployment) -> None:
    """A request every now and then, whatever became of those before."""
    async with asyncio.TaskGroup() as requests:
        number = 0
        while True:
            number += 1
            requests.create_task(_ask(deployment.proxy, number))
            if deployment.proves:
                requests.create_task(_post(deployment.proxy, "/pairs/prove"))
            await asyncio.sleep(_PAUSE)


async def _ask(proxy: Program, number: int) -> None:
    body = {"model": "fake", "prompt": f"question {number} of many", "max_tokens": 4, "stream": True}
    await _post(proxy, "/v1/completions", body)


async def _post(proxy: Program, path: str, body: object = None) -> None:
    with suppress(httpx.HTTPError):
        await proxy.client.post(path, json=body, timeout=20)
