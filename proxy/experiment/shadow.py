"""Copies of requests to the shadow of a split: answered there, measured, and thrown away.

A copy never delays its request nor fails it: it runs in a task of its own, there are only so many at once, and it
begins where its request does, with the same time before.
"""

import asyncio
import logging
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from typing import Any

from proxy.completion import Bypass, bypass
from proxy.errors import EngineFailure, ProxyError
from proxy.exchange import Call, Stream
from proxy.experiment.likeness import is_greedy, same_texts
from proxy.experiment.observer import Observer
from proxy.fallback import Answering
from proxy.headers import RequestId, with_headers
from proxy.metrics import Metrics
from proxy.outcome import outcome_of
from proxy.pools import PoolFallback, by_name
from proxy.record import Phase, Record
from proxy.routing import Route
from proxy.splitter import Splitter
from proxy.streaming import EventRelay
from proxy.usage import usage_of

logger = logging.getLogger(__name__)

_STATEFUL = (Bypass.STORED_RESPONSE, Bypass.SERVER_TOOLS)
"""Asked twice, these would do something twice, or ask an instance for what another one keeps."""


class Shadow:
    """Makes the copies."""

    def __init__(self, splitter: Splitter, inner: Answering, metrics: Metrics, observer: Observer) -> None:
        """``observer`` is told how a copy has ended, and whether its text was the same."""
        self._splitter = splitter
        self._inner = inner
        self._metrics = metrics
        self._observer = observer
        self._running: set[asyncio.Task[None]] = set()

    def offer(self, call: Call) -> "Copy | None":
        """Copy a request that is about to be answered, if the split wants it; its record is told so."""
        split, pool = self._splitter.split, self._splitter.copied_to(call.record)
        if split is None or pool is None or bypass(call.completion) in _STATEFUL:
            return None
        if len(self._running) >= split.shadow_at_once:
            self._metrics.not_copied(by_name(pool))
            return None
        call.record.copied = True
        copy = Copy(_copy_of(call, pool), self._observer)
        task = asyncio.create_task(self._answer(copy), name="shadow")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return copy

    async def _answer(self, copy: "Copy") -> None:
        record = copy.call.record
        try:
            answer = await self._inner.answer(copy.call)
            if isinstance(answer, Stream):
                await EventRelay(answer, record, self._ended_with(record))({}, _never, _nowhere)
                return
            record.usage = usage_of(answer.body)
            copy.answered(answer.body)
            self._end(record, answer.status, None)
        except ProxyError as error:
            self._end(record, error.status, error)
        except Exception:  # the client has its answer, and nobody waits for this task
            logger.exception("%s: a copy failed by a defect of the proxy", record.id.internal)

    def _ended_with(self, record: Record) -> Callable[[int, ProxyError | None], None]:
        return lambda status, error: self._end(record, status, error)

    def _end(self, record: Record, status: int, error: ProxyError | None) -> None:
        if error is not None:
            record.failure = error.kind if isinstance(error, EngineFailure) else type(error).__name__
        outcome = outcome_of(record, status, error)
        self._metrics.copied(record, outcome)
        self._observer.finished(record, outcome)

    async def aclose(self) -> None:
        """End those that still run; they count for nothing."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


class Copy:
    """One of them, and the answer that its client got."""

    def __init__(self, call: Call, observer: Observer) -> None:
        self.call = call
        self._observer = observer
        self._other: bytes | None = None

    def answered(self, body: bytes) -> None:
        """Either of the two, whichever comes first, and then the other one; both are whole."""
        if not is_greedy(self.call.completion):
            return
        if self._other is None:
            self._other = body
            return
        same = same_texts(self.call.completion.endpoint, self._other, body)
        self._observer.compared(self.call.record, same=same)


def _copy_of(call: Call, pool: str) -> Call:
    asked = call.record
    identity = RequestId(asked.id.public, f"{asked.id.internal}-copy")
    record = Record(identity, asked.endpoint, asked.method, asked.route, asked.client, started=asked.started)
    record.model, record.has_one_choice, record.phase = asked.model, asked.has_one_choice, Phase.PREFILL
    record.split, record.bucket, record.arm = asked.split, asked.bucket, by_name(pool)
    headers = with_headers(call.headers, [(b"x-request-id", identity.internal.encode())])
    return replace(call, headers=headers, record=record, route=Route(pool, PoolFallback.REFUSE), trace=None)


async def _never() -> MutableMapping[str, Any]:
    """No client leaves."""
    await asyncio.Event().wait()
    raise AssertionError


async def _nowhere(message: MutableMapping[str, Any]) -> None:
    """No client reads."""
