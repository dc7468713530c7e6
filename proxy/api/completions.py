"""``POST /v1/completions`` and ``POST /v1/chat/completions``."""

import uuid

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proxy.admission import Admission
from proxy.api.body import read_body
from proxy.api.failures import failure_response
from proxy.api.finish import Finish
from proxy.api.gate import client_of
from proxy.client_policy import HEADER, policy_of
from proxy.completion import parse
from proxy.disconnect import unless_gone
from proxy.dispatch import Call, Dispatcher, Whole
from proxy.errors import ProxyError
from proxy.headers import request_id, to_engine, value_of
from proxy.metrics import Metrics
from proxy.record import Endpoint, Record
from proxy.settings import Settings
from proxy.streaming import EventRelay


def completion_routes(dispatcher: Dispatcher, settings: Settings, admission: Admission, metrics: Metrics) -> APIRouter:
    """The routes, answered by a dispatcher and counted in the metrics."""
    router = APIRouter()

    async def completions(request: Request) -> Response:
        return await _complete(request, Endpoint.COMPLETIONS, dispatcher, settings, admission, metrics)

    async def chat_completions(request: Request) -> Response:
        return await _complete(request, Endpoint.CHAT, dispatcher, settings, admission, metrics)

    # Plain routes: the framework's own would look for parameters to inject, a twentieth of all work per request.
    router.add_route("/v1/completions", completions, methods=["POST"])
    router.add_route("/v1/chat/completions", chat_completions, methods=["POST"])
    return router


async def _complete(
    request: Request,
    endpoint: Endpoint,
    dispatcher: Dispatcher,
    settings: Settings,
    admission: Admission,
    metrics: Metrics,
) -> Response:
    client_headers = request.scope["headers"]
    record = Record(
        request_id(value_of(client_headers, b"x-request-id"), uuid.uuid4().hex), endpoint, client_of(request.scope)
    )
    finish = Finish(record, metrics, admission)
    try:
        policy = policy_of(value_of(client_headers, HEADER), settings)
        completion = parse(await read_body(request, settings.body_limit), chat=endpoint is Endpoint.CHAT)
        await finish.enter(request.receive)
        call = Call(request.url.path, to_engine(client_headers, record.id.internal), completion, record, policy)
        answer = await unless_gone(dispatcher.answer(call), request.receive)
    except ProxyError as error:
        finish(error.status, error)
        return failure_response(error, record.headers())
    if isinstance(answer, Whole):
        finish(answer.status)
        response = Response(answer.body, answer.status)
        response.raw_headers += [*answer.headers, *record.headers()]
        return response
    return EventRelay(answer, record.headers(), finish.after_start)
