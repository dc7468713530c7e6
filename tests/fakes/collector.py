"""A collector of traces: OTLP over HTTP on a real socket."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2

from tests.fakes.wire import Reply, Seen, WireServer

_KINDS = {
    trace_pb2.Span.SPAN_KIND_SERVER: "server",
    trace_pb2.Span.SPAN_KIND_CLIENT: "client",
    trace_pb2.Span.SPAN_KIND_INTERNAL: "internal",
}
_ERROR = trace_pb2.Status.STATUS_CODE_ERROR


@dataclass(frozen=True)
class CollectedSpan:
    """One span as it came. Ids are hexadecimal, times nanoseconds."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    attributes: dict[str, Any]
    events: dict[str, int]
    """Their times by their names."""
    error: str | None
    """Its description; ``None`` for a span that did not fail."""


class Collector:
    """Takes spans on ``/v1/traces``."""

    def __init__(self, port: int = 0) -> None:
        self.spans: list[CollectedSpan] = []
        self.seen: list[Seen] = []
        self.status = 200
        """What it answers; other than 200, it keeps nothing."""
        self.hangs = False
        """Never answer."""
        self._changed = asyncio.Condition()
        self._wire = WireServer(self._answer, "127.0.0.1", port)

    @property
    def port(self) -> int:
        """Where it listens, once started."""
        return self._wire.port

    @property
    def url(self) -> str:
        """The base address."""
        return f"http://127.0.0.1:{self._wire.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, on the same port as before when it was stopped."""
        await self._wire.start()

    async def stop(self) -> None:
        """Be gone."""
        await self._wire.stop()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition that spans, or posts of them, can make true."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(condition), 30)

    async def request(self, number: int = 1) -> dict[str, list[CollectedSpan]]:
        """The spans of the so-many-th request that has ended, by name, oldest first."""
        await self.until(lambda: len(self.servers) >= number)
        server = self.servers[number - 1]
        spans = [span for span in self.spans if span.parent == server.id]
        tree: dict[str, list[CollectedSpan]] = {}
        for span in sorted([server, *spans], key=lambda span: span.start):
            tree.setdefault(span.name, []).append(span)
        return tree

    @property
    def servers(self) -> list[CollectedSpan]:
        """The spans of whole requests; those of their parts have come before."""
        return [span for span in self.spans if span.kind == "server"]

    async def _answer(self, seen: Seen, reply: Reply) -> None:
        assert (seen.method, seen.path) == ("POST", "/v1/traces")
        async with self._changed:
            self.seen.append(seen)
            if self.status == 200 and not self.hangs:
                self.spans += _spans(ExportTraceServiceRequest.FromString(seen.body))
            self._changed.notify_all()
        if self.hangs:
            await asyncio.Event().wait()
        await reply.whole(self.status, b"", {"content-type": "application/x-protobuf"})


def _spans(request: Any) -> list[CollectedSpan]:
    return [
        CollectedSpan(
            service=_attributes(resource.resource.attributes)["service.name"],
            name=span.name,
            kind=_KINDS[span.kind],
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            start=span.start_time_unix_nano,
            end=span.end_time_unix_nano,
            attributes=_attributes(span.attributes),
            events={event.name: event.time_unix_nano for event in span.events},
            error=span.status.message if span.status.code == _ERROR else None,
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
