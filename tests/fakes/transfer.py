"""How KV gets from one fake engine to another: vLLM's connectors as far as a proxy can tell them apart."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tests.fakes import answers
from tests.fakes.completions import Choice

_PULL_NEEDS = ("remote_block_ids", "remote_engine_id", "remote_request_id", "remote_host", "remote_port")
_PUSH_NEEDS = ("remote_engine_id", "remote_request_id", "remote_host", "remote_port", "tp_size")
_MOONCAKE_NEEDS = ("transfer_id", "remote_engine_id", "remote_bootstrap_addr")


class Fatal(Exception):
    """What came ends a real engine."""


class NotLoaded(Exception):
    """The KV did not arrive."""


@dataclass
class Work:
    """One request as a connector sees it."""

    given: dict
    """The KV parameters."""
    name: str
    """The engine's name of the request, without the random part."""
    number: str
    """The same with it."""
    prompt: tuple[str, ...]
    rank: str | None
    """Of the data-parallel engine that was asked for."""
    reads_caches: bool


@dataclass
class Fabric:
    """What connects the engines of a test."""

    engines: set[str] = field(default_factory=set)
    """Names of the prefill engines that run, in their connector."""
    store: set[tuple[str, ...]] = field(default_factory=set)
    """Prompts whose KV lies in a store."""
    waiting: dict[str, asyncio.Event] = field(default_factory=dict)
    """KV that was given and not taken, or is waited for, by the key of both sides."""
    given: list[str] = field(default_factory=list)
    """The keys of all KV that was given."""

    def give(self, key: str) -> None:
        """Prefill has it now."""
        self.given.append(key)
        self.waiting.setdefault(key, asyncio.Event()).set()

    async def take(self, engine: str, key: str) -> None:
        """Decode waits for it, for ever if need be."""
        if engine not in self.engines:  # decode still talks to the process that was
            await asyncio.Event().wait()
        try:
            await self.waiting.setdefault(key, asyncio.Event()).wait()
        finally:
            del self.waiting[key]


class Connector(Protocol):
    """One engine's side of it."""

    async def receive(self, work: Work) -> bool:
        """Whether the prompt's KV came from elsewhere; raises :class:`NotLoaded` and :class:`Fatal`."""
        ...

    def finish(self, work: Work, choice: Choice) -> dict | None:
        """The parameters to answer when a request is complete."""
        ...


@dataclass
class Pull:
    """NIXL, decode reads. Nobody looks whether the KV is there: a test says when it is not."""

    engine_id: str
    port: int
    fabric: Fabric
    prefills: bool

    async def receive(self, work: Work) -> bool:
        if not work.given.get("do_remote_prefill"):
            return False
        if any(work.given.get(key) is None for key in _PULL_NEEDS):
            raise Fatal
        return True

    def finish(self, work: Work, choice: Choice) -> dict | None:
        if not work.given.get("do_remote_decode") or choice.finish in ("abort", "error"):
            return None
        return answers.kv_params(self.engine_id, work.number, self.port, len(choice.prompt), len(choice.tokens))


class Push(Pull):
    """NIXL, prefill writes, when both have a request of the same name."""

    async def receive(self, work: Work) -> bool:
        if not work.given.get("do_remote_prefill"):
            return False
        if any(work.given.get(key) is None for key in _PUSH_NEEDS):
            raise Fatal
        await self.fabric.take(work.given["remote_engine_id"], work.name)
        return True

    def finish(self, work: Work, choice: Choice) -> dict | None:
        params = super().finish(work, choice)
        if params is None:
            return None
        self.fabric.give(work.name)
        return params | {"transfer_mode": "push"}


class Mooncake(Pull):
    """Prefill writes, for a transfer that both were told of. Roles are strict."""

    async def receive(self, work: Work) -> bool:
        if work.given.get("do_remote_decode") and not self.prefills:
            raise Fatal
        if not work.given.get("do_remote_prefill"):
            return False
        if self.prefills:
            raise Fatal
        if any(key not in work.given for key in _MOONCAKE_NEEDS):
            return False
        if work.given["remote_engine_id"] not in self.fabric.engines:  # decode asks the bootstrap server, too
            raise NotLoaded
        await self.fabric.take(work.given["remote_engine_id"], work.given["transfer_id"])
        return True

    def finish(self, work: Work, choice: Choice) -> dict | None:
        mine = work.rank in (None, "0")  # another rank would not know of the transfer
        if work.given.get("do_remote_decode") and work.given.get("transfer_id") and choice.finish == "length" and mine:
            self.fabric.give(work.given["transfer_id"])
        return None


class Store(Pull):
    """Whoever has computed a prompt leaves its KV for all; parameters mean nothing."""

    async def receive(self, work: Work) -> bool:
        return work.reads_caches and work.prompt in self.fabric.store

    def finish(self, work: Work, choice: Choice) -> dict | None:
        self.fabric.store.add(work.prompt)
        return None


CONNECTORS: dict[str, Callable[[str, int, Fabric, bool], Connector]] = {
    "nixl-pull": Pull,
    "nixl-push": Push,
    "shared-storage": Store,
    "mooncake": Mooncake,
    "lmcache": Store,
    "multi": Pull,
}
