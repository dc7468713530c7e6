"""The routes that generate, through prefill and decode where that is possible."""

import logging
import uuid
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from proxy.admission import Admission
from proxy.api.body import read_body
from proxy.api.failures import defect_response, failure_response
from proxy.api.finish import Finish
from proxy.api.gate import client_of
from proxy.api.target import target_of
from proxy.client_policy import HEADER, policy_of
from proxy.completion import has_one_choice, parse
from proxy.disconnect import unless_gone
from proxy.endpoint import ROUTES, Endpoint
from proxy.errors import ProxyError
from proxy.exchange import Answer, Call, Stream, Whole
from proxy.experiment.shadow import Shadow
from proxy.fallback import Answering
from proxy.headers import request_id, to_engine, value_of
from proxy.metrics import Metrics
from proxy.outcome import Tell
from proxy.record import Record
from proxy.rules import Rules
from proxy.settings import Settings
from proxy.splitter import Splitter
from proxy.streaming import EventRelay
from proxy.task import temperature_of
from proxy.tracing import Trace, Tracer
from proxy.usage import drafted_of, usage_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Divided:
    """What divides requests among pools, and who looks at what comes of it."""

    rules: Rules
    splitter: Splitter
    shadow: Shadow
    tell: Tell


class CompletionRoute:
    """One of them, as an ASGI application: the web framework's layers would be a third of all work per request."""

    def __init__(
        self,
        endpoint: Endpoint,
        dispatcher: Answering,
        settings: Settings,
        admission: Admission,
        metrics: Metrics,
        tracer: Tracer | None,
        divided: Divided,
    ) -> None:
        self._endpoint = endpoint
        self._dispatcher = dispatcher
        self._divided = divided
        self._settings = settings
        self._admission = admission
        self._metrics = metrics
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope["headers"]
        identity = request_id(value_of(headers, b"x-request-id"), uuid.uuid4().hex)
        record = Record(identity, self._endpoint, "POST", scope["path"], client_of(scope))
        trace = None if self._tracer is None else self._tracer.begin(record, scope["path"], headers)
        finish = Finish(record, self._metrics, self._admission, trace, self._divided.tell)
        try:
            answer = await self._answer(scope, receive, finish, trace)
        except ProxyError as error:
            finish(error.status, error)
            await failure_response(error, record)(scope, receive, send)
            return
        except Exception:  # there is no framework around this to answer in its place
            logger.exception("%s: a defect of the proxy", identity.internal)
            record.failure = "defect"
            finish(500)
            await defect_response(record)(scope, receive, send)
            return
        if isinstance(answer, Stream):
            await EventRelay(answer, record, finish.after_start)(scope, receive, send)
            return
        record.usage, record.drafted = usage_of(answer.body), drafted_of(answer.body)
        finish(answer.status)
        length = (b"content-length", b"%d" % len(answer.body))
        told = [length, *answer.headers, *record.headers()]
        await send({"type": "http.response.start", "status": answer.status, "headers": told})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, scope: Scope, receive: Receive, finish: Finish, trace: Trace | None) -> Answer:
        headers, record = scope["headers"], finish.record
        policy = policy_of(value_of(headers, HEADER), self._settings)
        completion = parse(await read_body(headers, receive, self._settings.body_limit, finish.hold), self._endpoint)
        record.model = self._metrics.model(completion.document.get("model"))
        record.has_one_choice = has_one_choice(completion)
        await finish.enter(receive)
        passed = to_engine(headers, record.id.internal)
        record.temperature = temperature_of(completion)
        ruled = self._divided.rules.route(completion, headers, record)
        route = self._divided.splitter.route(ruled, completion, headers, record)
        call = Call(target_of(scope), passed, completion, record, policy, route, trace=trace)
        copy = self._divided.shadow.offer(call)
        answer = await unless_gone(self._dispatcher.answer(call), receive)
        if copy is not None and isinstance(answer, Whole):
            copy.answered(answer.body)
        return answer


def completion_routes(
    dispatcher: Answering,
    settings: Settings,
    admission: Admission,
    metrics: Metrics,
    tracer: Tracer | None,
    divided: Divided,
) -> dict[str, ASGIApp]:
    """By path, for the method POST; answered by a dispatcher, counted in the metrics and traced."""
    return {
        path: CompletionRoute(endpoint, dispatcher, settings, admission, metrics, tracer, divided)
        for path, endpoint in ROUTES.items()
    }
