"""The only file that knows OpenTelemetry: requests as spans, sent to a collector by a thread in the background."""

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace import Tracer as OtelTracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from proxy.errors import ClientGone, EngineError, EngineFailure, EngineRejection, ShuttingDown
from proxy.headers import RawHeaders, value_of
from proxy.record import Record
from proxy.settings import Tracing
from proxy.tracing import LegKind

logger = logging.getLogger(__name__)

LAST_SPANS = 2.0
"""Seconds in which those that are left at the end can still be sent."""
_EXPORT_TIMEOUT = 5.0
_TOLD_EVERY = 60.0
"""Seconds between two log lines that the collector does not take spans."""
_W3C = TraceContextTextMapPropagator()
_CONTEXT = ("traceparent", "tracestate")
_CONTEXT_RAW = {name.encode() for name in _CONTEXT}
_NOBODYS_FAULT = (asyncio.CancelledError, ClientGone, ShuttingDown)
"""The client left, or the proxy ends."""
_EXPORTERS_LOG = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_QUEUES_LOG = "opentelemetry.sdk._shared_internal"


class Spans:
    """Makes spans; see :class:`proxy.tracing.Tracer`."""

    def __init__(self, settings: Tracing) -> None:
        """Nothing is sent yet, so that a collector may come later. ``OTEL_EXPORTER_OTLP_HEADERS`` is respected."""
        self._exporter = _Patient(settings.traces_url)
        self._provider = TracerProvider(
            sampler=ParentBasedTraceIdRatio(settings.sample_ratio),
            resource=Resource.create({"service.name": settings.service_name}),
            shutdown_on_exit=False,  # that would wait for half a minute
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("duet.proxy")

    def begin(self, record: Record, route: str, headers: RawHeaders) -> "RequestSpans":
        """A request has come."""
        carrier = {name: value for name in _CONTEXT if (value := value_of(headers, name.encode())) is not None}
        parent = _W3C.extract(carrier) if carrier else Context()
        attributes = {"http.request.method": "POST", "http.route": route, "duet.request_id": record.id.internal}
        span = self._tracer.start_span(f"POST {route}", parent, SpanKind.SERVER, attributes)
        return RequestSpans(self._tracer, span, record)

    async def aclose(self) -> None:
        """Send what is left; a collector that does not answer holds nothing up."""
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def close() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(done.set)

        # No thread of the loop's own, for whose end the loop would wait.
        threading.Thread(target=close, name="last spans", daemon=True).start()
        try:
            async with asyncio.timeout(LAST_SPANS):
                await done.wait()
        except TimeoutError:
            logger.warning("the last spans could not be sent within %g s and are lost", LAST_SPANS)
            self._exporter.shutdown()


class RequestSpans:
    """The spans of one request; see :class:`proxy.tracing.Trace`."""

    def __init__(self, tracer: OtelTracer, span: Span, record: Record) -> None:
        self._tracer = tracer
        self._span = span
        self._record = record
        self._context = set_span_in_context(span, Context())
        self._hand_over: Span | None = None
        self._decode_has_begun = False

    @property
    def id(self) -> str | None:
        """Of the trace, if it is collected."""
        context = self._span.get_span_context()
        return format_trace_id(context.trace_id) if context.trace_flags.sampled else None

    def leg(self, kind: LegKind, instance: str) -> "LegSpan":
        """A request is sent to an instance."""
        if kind is not LegKind.DECODE:  # a new try, or none any more
            self._end_hand_over(str(self._record.bypass or "decode did not take the KV over"))
            self._decode_has_begun = False
        span = self._tracer.start_span(kind, self._context, SpanKind.CLIENT, {"duet.instance": instance})
        return LegSpan(self, kind, span)

    def end(self, status: int) -> None:
        """The request is over."""
        record, span = self._record, self._span
        self._end_hand_over(record.failure or "decode did not take the KV over")
        told = {
            "http.response.status_code": status,
            "duet.path": record.path,
            "duet.prefill": record.prefill,
            "duet.decode": record.decode,
            "duet.bypass": record.bypass,
            "duet.pool": record.pool,
            "duet.arm": record.arm,
            "duet.failure": record.failure,
            "duet.client": record.client,
        }
        span.set_attributes({name: value for name, value in told.items() if value is not None})
        if status >= 500 or (status == 200 and record.failure is not None):  # or in the middle of a stream
            span.set_status(Status(StatusCode.ERROR, record.failure))
        span.end()

    def prefilled(self) -> None:
        """Prefill has answered: its KV waits."""
        if not self._decode_has_begun:
            self._hand_over = self._tracer.start_span("kv hand-over", self._context)

    def decoding(self) -> None:
        """Decode's first byte has come: it has the KV."""
        self._decode_has_begun = True
        self._end_hand_over(None)

    def _end_hand_over(self, failure: str | None) -> None:
        span, self._hand_over = self._hand_over, None
        if span is not None:
            if failure is not None:
                span.set_status(Status(StatusCode.ERROR, failure))
            span.end()


class LegSpan:
    """One request to one instance; see :class:`proxy.tracing.Leg`."""

    def __init__(self, request: RequestSpans, kind: LegKind, span: Span) -> None:
        self._request = request
        self._kind = kind
        self._span = span

    def onto(self, headers: RawHeaders) -> RawHeaders:
        """The headers with this span in them."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, set_span_in_context(self._span, Context()))
        kept = [header for header in headers if header[0] not in _CONTEXT_RAW]
        return [*kept, *((name.encode(), value.encode()) for name, value in carrier.items())]

    def first_byte(self) -> None:
        """The answer has begun."""
        self._span.add_event("first byte")
        if self._kind is LegKind.DECODE:
            self._request.decoding()

    def end(self, error: BaseException | None) -> None:
        """It is complete, or was ended by this."""
        span = self._span
        if error is None:
            span.set_attribute("http.response.status_code", 200)
        elif isinstance(error, _NOBODYS_FAULT):
            span.set_attribute("error.type", type(error).__name__)
        else:
            if isinstance(error, EngineRejection | EngineError):
                span.set_attribute("http.response.status_code", error.status)
            span.set_attribute("error.type", error.kind if isinstance(error, EngineFailure) else type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        span.end()
        if error is None and self._kind is LegKind.PREFILL:
            self._request.prefilled()


class _Patient(SpanExporter):
    """Sends spans, and says only now and then that it cannot; the library would say it for each batch."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._exporter = OTLPSpanExporter(endpoint=url, timeout=_EXPORT_TIMEOUT)
        self._said = _LastWords()
        self._lost = 0
        self._told: float | None = None
        self._closed = False
        for name in (_EXPORTERS_LOG, _QUEUES_LOG):
            logging.getLogger(name).addFilter(self._said)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send these."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            if self._lost:
                logger.info("the collector at %s takes spans again; %d were lost", self._url, self._lost)
            self._lost, self._told = 0, None
            return result
        self._lost += len(spans)
        now = time.monotonic()
        if self._told is None or now >= self._told + _TOLD_EVERY:
            self._told = now
            logger.warning(
                "the collector at %s takes no spans, %d are lost so far, requests go on: %s",
                *(self._url, self._lost, self._said.text),
            )
        return result

    def shutdown(self) -> None:
        """Send nothing any more, and try nothing again."""
        if not self._closed:
            self._closed = True
            self._exporter.shutdown()  # type: ignore[no-untyped-call]
            for name in (_EXPORTERS_LOG, _QUEUES_LOG):
                logging.getLogger(name).removeFilter(self._said)


class _LastWords(logging.Filter):
    """Keeps a library's last message and lets none through."""

    text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep it."""
        self.text = record.getMessage()
        return False
