"""A vLLM that does as it is told: real HTTP on a real socket, answers of the real shape, faults by script.

In a test: ``async with FakeEngine("prefill") as engine: engine.faults.append(Fault(status=500))``.
As a program: ``python -m tests.fakes.engine --port N --role decode`` (see :mod:`tests.fakes.program`).
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self
from uuid import uuid4

from tests.fakes import answers, completions, messages, responses
from tests.fakes.answers import Kind
from tests.fakes.completions import Choice, Ending
from tests.fakes.refusals import Refused, accepted, completion_of
from tests.fakes.transfer import CONNECTORS, Connector, Fabric, Fatal, NotLoaded, Work
from tests.fakes.wire import Cut, Reply, Reset, Seen, WireServer

SSE = "text/event-stream; charset=utf-8"
_PLAIN = "text/plain; version=1.0.0; charset=utf-8"
_ALLOWED = {
    "/health": "GET",
    "/metrics": "GET",
    "/version": "GET",
    "/tokenize": "POST",
    "/v1/models": "GET",
    "/v1/messages/count_tokens": "POST",
    **{kind.value: "POST" for kind in Kind},
}
_GENERATING = {kind.value for kind in Kind}


@dataclass(frozen=True)
class Fault:
    """What goes otherwise than usual with one completion request."""

    status: int | None = None
    """Answer this at once, with ``body`` and ``headers``."""
    body: bytes = b'{"error":{"message":"scripted","type":"Scripted","param":null,"code":500}}'
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    """Close the connection without an answer."""
    hang: bool = False
    """Never answer."""
    wait: asyncio.Event | None = None
    """Go on when this is set."""
    needs_no_kv: bool = False
    """Compute the prompt whatever is handed over."""
    cut_after: int | None = None
    """Break off after so many events, or in the middle of an answer that is not streamed."""
    reset: bool = False
    """Break off by a reset."""
    end_after: int | None = None
    """End the stream properly after so many events, without ``[DONE]``."""
    stall_after: int | None = None
    """Say nothing more after so many events."""
    gate: asyncio.Semaphore | None = None
    """Every event waits for a permit."""
    piece: int | None = None
    """Write the stream in pieces of so many bytes, not event by event."""
    first_event: bytes | None = None
    """Stream this and ``[DONE]`` only."""
    kv: dict | None = field(default_factory=dict)
    """Replace these keys of the KV parameters (``None`` removes one); ``None`` answers no parameters."""
    ending: Ending | None = None
    """End before the time, as a real engine does when it shuts down or cannot load the KV."""


class FakeEngine:
    """One engine. ``role`` is prefill, decode or aggregated; any role serves whole requests, as vLLM's do."""

    def __init__(
        self,
        role: str = "aggregated",
        *,
        model: str = "fake",
        host: str = "127.0.0.1",
        port: int = 0,
        side_channel_port: int = 5600,
        pace: float = 0.0,
        connector: str = "nixl-pull",
        fabric: Fabric | None = None,
        pool: str = "",
    ) -> None:
        """``pace``: seconds before every event of a stream. Engines of one ``fabric`` hand KV over to each other."""
        self.role = role
        self.pool = pool
        self.connector = connector
        self.fabric = fabric or Fabric()
        self.model = model
        self.engine_id = str(uuid4())
        self.seen: list[Seen] = []
        """Completion requests, oldest first."""
        self.asked_models: list[Seen] = []
        self.echoed: list[Seen] = []
        """Requests to the route ``/echo``."""
        self.faults: deque[Fault] = deque()
        """For the next completion requests, one each."""
        self.health: int | None = 200
        """What ``/health`` answers; ``None`` for nothing at all."""
        self.by_source = dict.fromkeys(answers.SOURCES, 0)
        """Prompt tokens by where their KV came from."""
        self.died = asyncio.Event()
        """Set when parameters came that kill a real engine."""
        self.told: bytes | None = None
        """What the bootstrap server answers instead."""
        self.queries = 0
        """How often the bootstrap server was asked."""
        self.running = 0
        self.version = "0.32.0"
        self.root: str | None = None
        """What it was given as the model, if that is not the served name."""
        self.base: str | None = None
        """The name of its model, when requests have to ask for an adapter's."""
        self.adapters: dict[str, str] = {}
        """Folders of LoRA adapters by name; only told."""
        self.cache_config: dict[str, str] = {}
        """Labels of ``vllm:cache_config_info`` that are not as usual, e.g. ``block_size``."""
        self.freed: list[str] = []
        """The requests of prefill whose KV it was told to free, as this engine had refused to take it over."""
        self.usage: Callable[[], float | None] = lambda: 0.0
        """Of the KV cache, as ``/metrics`` tells it; ``None`` for an engine that does not."""
        self.kv_fails = False
        """No KV cache that is handed over to this instance arrives."""
        self.kv_fails_from: set[str] = set()
        """Nor from the engines with these ids."""
        self.whole_blocks = False
        """It takes no KV of prompts that are no longer than a block, as engines do from a store."""
        self.looks = 0
        """How often its metrics were asked for."""
        self.tells_cached = True
        """Whether answers say how much of a prompt was not computed, as with vLLM's --enable-prompt-tokens-details."""
        self.recomputes = False
        """It answers well, but computes prompts itself whose KV it is given."""
        self.wrong_kv = False
        """It answers otherwise with KV that it is given."""
        self.tells_drafts: Callable[[dict], dict | None] = lambda _: None
        """By the request's body, what answers tell in ``metrics``; see :func:`tests.fakes.completions.drafted`."""
        self.drift = 0
        """Every so many-th token of a prompt is not what it would choose itself; 0 for none."""
        self.thawed = asyncio.Event()
        """While it is not set, nothing is computed; all else is answered."""
        self.thawed.set()
        self.started = time.time()
        self.generated = 0
        self.kv_dtype = "auto"
        self.block_size = 16
        self.counts: dict[str, int] = {}
        """Further counters, e.g. ``nixl_num_failed_transfers``."""
        self.more_metrics: Callable[[], str] = lambda: ""
        """Whatever else ``/metrics`` says, behind its own."""
        self.instead: dict[str, tuple[int, bytes] | None] = {}
        """Status and body that are answered by path in place of its own; ``None`` for nothing at all."""
        self._side_channel_port = side_channel_port
        self.pace = pace
        self._changed = asyncio.Condition()
        self._wire = WireServer(self._answer, host, port)
        self.bootstrap = WireServer(self._tell, host, 0)
        """Mooncake's, beside a prefill engine."""
        self._has_bootstrap = connector == "mooncake" and role == "prefill"

    @property
    def port(self) -> int:
        """The port, once started."""
        return self._wire.port

    @property
    def url(self) -> str:
        """The base address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def bootstrap_url(self) -> str | None:
        """Of the bootstrap server, if there is one."""
        return f"http://127.0.0.1:{self.bootstrap.port}" if self._has_bootstrap else None

    async def start(self) -> None:
        """Listen, on the same port as before when it was stopped."""
        if self.role == "prefill":
            self.fabric.engines.add(self.engine_id)
        if self._has_bootstrap:
            await self.bootstrap.start()
        self.started = time.time()
        await self._wire.start()

    async def stop(self) -> None:
        """Be gone: connections break, new ones are refused."""
        await self._wire.stop()
        if self.role == "prefill":
            self.fabric.engines.discard(self.engine_id)
        if self._has_bootstrap:
            await self.bootstrap.stop()

    def become_another(self) -> None:
        """As a process that was started again would be."""
        self.fabric.engines.discard(self.engine_id)
        self.engine_id = str(uuid4())
        self.fabric.engines.add(self.engine_id)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def saw(self, count: int = 1) -> Seen:
        """Wait for the so-many-th completion request and return it."""
        await self.until(lambda: len(self.seen) >= count)
        return self.seen[count - 1]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition that a request can make true."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(condition), 10)

    async def _answer(self, seen: Seen, reply: Reply) -> None:
        if seen.path in self.instead:
            other = self.instead[seen.path]
            if other is None:
                await asyncio.Event().wait()
            else:
                await reply.whole(*other)
            return
        match seen.method, seen.path:
            case "GET", "/health":
                if self.health is None:
                    await asyncio.Event().wait()
                await reply.whole(self.health or 500, b"")
            case "GET", "/v1/models":
                self.asked_models.append(seen)
                await reply.whole(
                    200, json.dumps(answers.models(self.base or self.model, self.root, self.adapters)).encode()
                )
            case "POST", "/tokenize":
                await reply.whole(200, json.dumps(answers.tokenized(json.loads(seen.body))).encode())
            case "GET", "/version":
                await reply.whole(200, json.dumps({"version": self.version}, separators=(",", ":")).encode())
            case "GET", "/metrics":
                self.looks += 1
                text = answers.metrics(
                    self.model,
                    self.by_source,
                    self.running if self.thawed.is_set() else 0,
                    started=self.started,
                    generated=self.generated,
                    cache_config={
                        "block_size": str(self.block_size),
                        "cache_dtype": self.kv_dtype,
                        **self.cache_config,
                    },
                    transfers=(
                        self.by_source["external_kv_transfer"] * 4096,
                        self.by_source["external_kv_transfer"] / 1e6,
                    ),
                    usage=self.usage(),
                    counts=self.counts,
                )
                text += self.more_metrics()
                await reply.whole(200, text.encode(), {"content-type": _PLAIN})
            case "POST", path if path.partition("?")[0] in _GENERATING:
                await self._counted(seen, reply)
            case _, path if path.partition("?")[0] == "/echo":
                await self._echo(seen, reply)
            case _, path if path in _ALLOWED:
                await reply.whole(405, b'{"detail":"Method Not Allowed"}', {"allow": _ALLOWED[path]})
            case _:
                await reply.whole(404, b'{"detail":"Not Found"}')

    async def _tell(self, seen: Seen, reply: Reply) -> None:
        """What Mooncake's bootstrap server answers to ``/query``."""
        self.queries += 1
        entry = {"engine_id": self.engine_id, "worker_addr": {"0": {"0": "tcp://127.0.0.1:1"}}}
        await reply.whole(200, json.dumps({"0": entry}).encode() if self.told is None else self.told)

    async def _echo(self, seen: Seen, reply: Reply) -> None:
        """No route of vLLM: answers the request's body in pieces, with the headers and in the way of the next fault."""
        self.echoed.append(seen)
        fault = self.faults.popleft() if self.faults else Fault()
        if fault.drop:
            raise Cut
        await reply.start({"content-type": seen.header("content-type") or "text/plain", **fault.headers})
        for start in range(0, len(seen.body), fault.piece or 65536):
            if fault.cut_after is not None and start >= fault.cut_after:
                raise Cut
            await reply.chunk(seen.body[start : start + (fault.piece or 65536)])
        await reply.chunk(b"")

    async def _counted(self, seen: Seen, reply: Reply) -> None:
        self.seen.append(seen)
        fault = self.faults.popleft() if self.faults else Fault()
        self.running += 1
        async with self._changed:
            self._changed.notify_all()
        try:
            await self.thawed.wait()
            await self._complete(seen, reply, fault)
        finally:
            self.running -= 1

    async def _complete(self, seen: Seen, reply: Reply, fault: Fault) -> None:
        if fault.wait is not None:
            await fault.wait.wait()
        if fault.drop:
            raise Cut
        if fault.hang:
            await asyncio.Event().wait()
        if fault.status is not None:
            await reply.whole(fault.status, fault.body, fault.headers)
            return
        kind = Kind(seen.path.partition("?")[0])
        try:
            body = accepted(seen.body, seen.header("content-type"), kind, self.model)
        except Refused as refused:
            self._free(seen.body)
            await reply.whole(refused.status, refused.body)
            return
        completion = completion_of(body, kind)
        answer = answers.answer_id(kind, seen.header("x-request-id"), body.get("request_id"))
        work = self._work(seen, completion, kind, answer)
        connector = CONNECTORS[self.connector](
            self.engine_id, self._side_channel_port, self.fabric, self.role == "prefill"
        )
        ending, prompt, source = fault.ending, completion, "local_compute"
        try:
            received = not fault.needs_no_kv and await self._received(connector, work)
            received = received and not (self.whole_blocks and len(work.prompt) <= self.block_size)
            source = "external_kv_transfer" if received and not self.recomputes else "local_compute"
            self.by_source[source] += len(work.prompt)
            if received and self.wrong_kv:
                prompt = {**completion, "prompt": "something else"}
        except NotLoaded:
            ending = Ending("error")
            self.counts["nixl_num_failed_transfers"] = self.counts.get("nixl_num_failed_transfers", 0) + 1
        choices = completions.choices_of(prompt, kind is not Kind.TEXT, ending)
        self.generated += sum(len(choice.tokens) for choice in choices)
        kv = None if fault.kv is None else connector.finish(work, choices[0])
        if kv is not None:
            kv = {key: each for key, each in (kv | fault.kv).items() if each is not None or key not in fault.kv}
        if body.get("stream"):
            await self._stream(self._events(body, kind, answer, choices, kv), reply, fault)
            return
        if any(choice.finish == "error" for choice in choices):
            failed = messages.failed() if kind is Kind.MESSAGE else completions.FAILED
            await reply.whole(500, json.dumps(failed).encode())
            return
        document = self._whole(body, kind, answer, choices, kv)
        if kind is Kind.TEXT:
            moved = len(work.prompt) if source == "external_kv_transfer" else 0
            given = body.get("kv_transfer_params") or {}
            cached = given.get("remote_prefill_cached_tokens", moved) if moved else 0
            document["usage"]["prompt_tokens_details"] = self._details(document["usage"], cached)
        text = json.dumps(document, separators=(",", ":")).encode()
        if fault.cut_after is not None:
            await reply.half(text)
            raise Cut
        await reply.whole(200, text)

    def _details(self, usage: dict, cached: int) -> dict | None:
        return usage["prompt_tokens_details"] | {"cached_tokens": cached} if self.tells_cached else None

    def _free(self, body: bytes) -> None:
        with suppress(ValueError, AttributeError, TypeError):
            params = json.loads(body)["kv_transfer_params"] if b"kv_transfer_params" in body else {}
            if params.get("do_remote_prefill"):
                self.freed.append(params["remote_request_id"])

    def _whole(self, body: dict, kind: Kind, answer: str, choices: list[Choice], kv: dict | None) -> dict:
        match kind:
            case Kind.RESPONSE:
                return responses.whole(body, self.model, answer, choices[0], kv)
            case Kind.MESSAGE:
                return messages.whole(self.model, answer, choices[0], kv)
            case _:
                told = self.tells_drafts(body)
                chat = kind is Kind.CHAT
                return completions.whole(body, chat, self.model, answer, choices, kv, drift=self.drift, metrics=told)

    def _events(
        self, body: dict, kind: Kind, answer: str, choices: list[Choice], kv: dict | None
    ) -> list[bytes | None]:
        match kind:
            case Kind.RESPONSE:
                return responses.events(body, self.model, answer, choices[0], kv)
            case Kind.MESSAGE:
                return [*messages.events(self.model, answer, choices[0])]
            case _:
                told = self.tells_drafts(body)
                return [*completions.events(body, kind is Kind.CHAT, self.model, answer, choices, told)]

    def _work(self, seen: Seen, completion: dict, kind: Kind, answer: str) -> Work:
        prompts = completions.prompts_of(completion, kind is not Kind.TEXT)
        name = answers.engine_request_id(kind, answer)
        return Work(
            given=completion.get("kv_transfer_params") or {},
            name=name,
            number=f"{name}-{uuid4().hex[:8]}",
            prompt=tuple(token for prompt in prompts for token in prompt),
            rank=seen.header("x-data-parallel-rank"),
            reads_caches=completion.get("prompt_logprobs") is None,
        )

    async def _received(self, connector: Connector, work: Work) -> bool:
        fails = self.kv_fails or work.given.get("remote_engine_id") in self.kv_fails_from
        if fails and work.given.get("do_remote_prefill"):
            raise NotLoaded
        try:
            return await connector.receive(work)
        except Fatal:
            self.died.set()
            raise Cut from None

    async def _stream(self, events: list[bytes | None], reply: Reply, fault: Fault) -> None:
        """Send the events; ``None`` among them breaks off."""
        if fault.first_event is not None:
            events = [fault.first_event, b"data: [DONE]\n\n"]
        if fault.piece is not None:
            text = b"".join(filter(None, events))
            events = [text[i : i + fault.piece] for i in range(0, len(text), fault.piece)]
        await reply.start({"content-type": SSE})
        for sent, event in enumerate(events):
            if event is None or sent == fault.cut_after:
                raise Reset if fault.reset else Cut
            if sent == fault.stall_after:
                await asyncio.Event().wait()
            if sent == fault.end_after:
                break
            if self.pace:
                await asyncio.sleep(self.pace)
            if fault.gate is not None:
                await fault.gate.acquire()
            await reply.chunk(event)
        await reply.chunk(b"")


if __name__ == "__main__":
    from tests.fakes.program import main

    main()
