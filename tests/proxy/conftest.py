"""A proxy on a real socket in front of fake engines."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import httpx
import pytest
import uvicorn
from prometheus_client.parser import text_string_to_metric_families

from proxy.app import create_apps
from proxy.cli import listen
from proxy.config import Discovery, ProxyConfig, dump
from proxy.server import options
from proxy.settings import Canary, FailurePolicy, Settings, Timeouts
from proxy.topology import ConnectorKind, Instance, Role, Topology
from tests.fakes.engine import FakeEngine


@dataclass
class Duet:
    """One proxy, its engines and a client of it."""

    prefill: FakeEngine
    decode: FakeEngine
    engines: list[FakeEngine]
    client: httpx.AsyncClient
    url: str
    config: ProxyConfig
    file: Path | None = None
    """Of the configuration, when the proxy follows it."""

    async def metric(self, name: str, **labels: str) -> float:
        """A sample's value; 0 when there is none."""
        return await self._sum("/metrics", name, labels)

    async def engine_metric(self, name: str, **labels: str) -> float:
        """The same of ``/metrics/engines``."""
        return await self._sum("/metrics/engines", name, labels)

    async def _sum(self, path: str, name: str, labels: dict[str, str]) -> float:
        text = (await self.client.get(path)).text
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return sum(
            sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items()
        )

    async def reconfigure(self, change: Callable[[ProxyConfig], ProxyConfig]) -> None:
        """Change the file that the proxy follows, and wait until it has."""
        assert self.file is not None
        self.config = change(self.config)
        new = self.file.with_suffix(".new")
        new.write_text(dump(self.config))
        os.replace(new, self.file)
        instances = {i.name: i.name in self.config.draining for i in self.config.topology.instances}

        async def draining() -> dict[str, bool]:
            return {i["name"]: i["draining"] for i in (await self.ready())["instances"]}

        await eventually(draining, instances)

    async def ready(self) -> dict:
        """What ``/ready`` says."""
        return (await self.client.get("/ready")).json()

    async def pairs(self) -> dict[tuple[str, str], dict]:
        """What ``/pairs`` says, by prefill and decode."""
        rows = (await self.client.get("/pairs")).json()["pairs"]
        return {(row["prefill"], row["decode"]): row for row in rows}

    async def standing(self, prefill: str = "prefill-0", decode: str = "decode-0") -> str:
        """Of one pair."""
        return (await self.pairs())[prefill, decode]["standing"]

    async def idle(self) -> None:
        """Wait until no request is in flight."""
        await eventually(lambda: self.metric("duet_in_flight"), 0)


async def eventually(ask: Callable, answer: object) -> None:
    """Ask until the answer is as expected: a minute at most, which only a machine that is very busy takes."""
    async with asyncio.timeout(60):
        while await ask() != answer:
            pass


class Server(uvicorn.Server):
    """Tells when it is ``up``."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


class StartDuet(Protocol):
    """Starts a proxy before a prefill and a decode engine, or others."""

    async def __call__(
        self,
        *,
        engines: list[FakeEngine] | None = None,
        policy: FailurePolicy = FailurePolicy.AGGREGATE,
        timeouts: Timeouts | None = None,
        probe_interval: float = 60.0,
        settings: Settings | None = None,
        canary: Canary | None = None,
        follow: bool = False,
        discovery: Discovery | None = None,
    ) -> Duet:
        """No canaries unless they are asked for: most tests count requests."""
        ...


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[StartDuet]:
    """Starts a proxy; the test's end stops it."""
    async with AsyncExitStack() as stack:

        async def begin(
            *,
            engines: list[FakeEngine] | None = None,
            policy: FailurePolicy = FailurePolicy.AGGREGATE,
            timeouts: Timeouts | None = None,
            probe_interval: float = 60.0,
            settings: Settings | None = None,
            canary: Canary | None = None,
            follow: bool = False,
            discovery: Discovery | None = None,
        ) -> Duet:
            chosen = [FakeEngine("prefill"), FakeEngine("decode")] if engines is None else engines
            for engine in chosen:
                await stack.enter_async_context(engine)
            topology = topology_of(chosen)
            config = ProxyConfig(
                topology if discovery is None else replace(topology, instances=()),
                replace(
                    settings or Settings(),
                    failure_policy=policy,
                    timeouts=timeouts or Timeouts(),
                    probe_interval=probe_interval,
                    canary=canary or Canary(enabled=False),
                ),
                discovery,
            )
            file = tmp_path / "proxy.json" if follow else None
            if file is not None:
                file.write_text(dump(config))
            url = await _serve(stack, config, file)
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=20, trust_env=False))
            first, last = (chosen[0], chosen[-1]) if chosen else (FakeEngine(), FakeEngine())
            return Duet(first, last, chosen, client, url, config, file)

        yield begin


@pytest.fixture
async def duet(start: StartDuet) -> Duet:
    """A proxy before one prefill and one decode engine."""
    return await start()


def topology_of(engines: list[FakeEngine]) -> Topology:
    """The engines as instances named by role, pool and number."""
    kinds = ["-".join(filter(None, (engine.role, engine.pool))) for engine in engines]
    names = [f"{kind}-{kinds[:i].count(kind)}" for i, kind in enumerate(kinds)]
    instances = tuple(
        Instance(name, Role(engine.role), engine.url, pool=engine.pool, bootstrap=engine.bootstrap_url)
        for name, engine in zip(names, engines, strict=True)
    )
    connectors = {engine.connector for engine in engines if engine.role == "prefill"}
    return Topology(instances, ConnectorKind(connectors.pop()) if connectors else None)


async def _serve(stack: AsyncExitStack, config: ProxyConfig, file: Path | None) -> str:
    listener = stack.enter_context(listen("127.0.0.1", 0))
    server = Server(options(create_apps(config, file).public))
    running = asyncio.create_task(server.serve(sockets=[listener]))

    async def stop() -> None:
        server.should_exit = True
        await running

    stack.push_async_callback(stop)
    await asyncio.wait_for(server.up.wait(), 10)
    return f"http://127.0.0.1:{listener.getsockname()[1]}"
