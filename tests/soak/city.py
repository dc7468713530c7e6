"""The processes of a soak: fake engines that die and come back, one proxy, and whoever disturbs them."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from dataclasses import replace
from pathlib import Path

import psutil

from proxy.config import ProxyConfig, dump
from proxy.settings import Admission, Breaker, Canary, Leg, Settings, Timeouts
from proxy.topology import ConnectorKind, Instance, Role, Topology
from tests.ports import free_port

_LEG = Leg(connect=1.0, first_byte=4.0, idle=4.0)
SETTINGS = Settings(
    canary=Canary(enabled=False),
    timeouts=Timeouts(prefill=_LEG, decode=_LEG, whole_answer=8.0),
    breaker=Breaker(pause=0.2, longest_pause=2.0),
    admission=Admission(concurrency=24, queue=8, wait=2.0),
    probe_interval=0.5,
)
ROLES = (Role.PREFILL, Role.PREFILL, Role.DECODE, Role.DECODE)


class City:
    """All processes; ``folder`` takes configuration and logs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._engines: dict[str, asyncio.subprocess.Process] = {}
        instances = [
            Instance(f"{role}-{number}", role, f"http://127.0.0.1:{free_port()}") for number, role in enumerate(ROLES)
        ]
        settings = replace(SETTINGS, port=free_port())
        self._whole = ProxyConfig(Topology(tuple(instances), ConnectorKind.NIXL_PULL), settings)
        self._file = folder / "proxy.json"
        self.url = f"http://127.0.0.1:{settings.port}"
        self.disturbances: dict[str, int] = {}

    async def build(self) -> None:
        """Start everything and wait until it serves."""
        for instance in self._whole.topology.instances:
            await self._start(instance)
        self._file.write_text(dump(self._whole))
        self._proxy = await self._spawn("proxy", "-m", "proxy", "--config", str(self._file))
        self.proxy = psutil.Process(self._proxy.pid)

    async def tear_down(self) -> int:
        """Stop everything; the proxy's exit status."""
        self._proxy.terminate()
        status = await self._proxy.wait()
        for process in self._engines.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        return status

    async def disturb(self, chance: random.Random) -> None:
        """One disturbance after the other until cancelled; then all is as at the start."""
        kinds = (self._kill, self._freeze, self._drain, self._take_away)
        try:
            while True:
                kind = chance.choice(kinds)
                name = kind.__name__.removeprefix("_")
                self.disturbances[name] = self.disturbances.get(name, 0) + 1
                await kind(chance.choice(self._whole.topology.instances), chance.uniform(0.0, 2.0))
                await asyncio.sleep(chance.uniform(0.0, 1.0))
        finally:
            self._configure(self._whole)

    async def _kill(self, instance: Instance, seconds: float) -> None:
        process = self._engines[instance.name]
        process.kill()
        await process.wait()
        try:
            await asyncio.sleep(seconds)
        finally:
            await self._start(instance)

    async def _freeze(self, instance: Instance, seconds: float) -> None:
        pid = self._engines[instance.name].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(3 * seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

    async def _drain(self, instance: Instance, seconds: float) -> None:
        self._configure(replace(self._whole, draining=(instance.name,)))
        await asyncio.sleep(seconds)
        self._configure(self._whole)

    async def _take_away(self, instance: Instance, seconds: float) -> None:
        others = tuple(other for other in self._whole.topology.instances if other != instance)
        self._configure(replace(self._whole, topology=replace(self._whole.topology, instances=others)))
        await asyncio.sleep(seconds)
        self._configure(self._whole)

    def _configure(self, config: ProxyConfig) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(dump(config))
        os.replace(new, self._file)

    async def _start(self, instance: Instance) -> None:
        port = instance.url.rpartition(":")[2]
        arguments = ("-m", "tests.fakes.engine", "--port", port, "--role", instance.role)
        self._engines[instance.name] = await self._spawn(instance.name, *arguments)

    async def _spawn(self, name: str, *arguments: str) -> asyncio.subprocess.Process:
        with (self._folder / f"{name}.log").open("ab") as log:
            environ = os.environ | {"FAKE_ENGINE_PACE": "0.005"}
            return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=log, stderr=log, env=environ)
