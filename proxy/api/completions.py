"""The routes that generate, through prefill and decode where that is possible."""

import uuid
from collections.abc import Awaitable, Callable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proxy.api.body import read_body
from proxy.api.failures import failure_response
from proxy.api.finish import Finish
from proxy.api.target import target_of
from proxy.completion import parse
from proxy.disconnect import unless_gone
from proxy.dispatch import Call, Dispatcher, Whole
from proxy.endpoint import Endpoint
from proxy.errors import ProxyError
from proxy.headers import request_id, to_engine, value_of
from proxy.metrics import Metrics
from proxy.record import Record
from proxy.streaming import EventRelay

ROUTES = {
    "/v1/completions": Endpoint.COMPLETIONS,
    "/v1/chat/completions": Endpoint.CHAT,
    "/v1/responses": Endpoint.RESPONSES,
    "/v1/messages": Endpoint.MESSAGES,
}


def completion_routes(dispatcher: Dispatcher, metrics: Metrics) -> APIRouter:
    """The routes, answered by a dispatcher and counted in the metrics."""
    router = APIRouter()

    def route(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def complete(request: Request) -> Response:
            return await _complete(request, endpoint, dispatcher, metrics)

        return complete

    # Plain routes: the framework's own would look for parameters to inject, a twentieth of all work per request.
    for path, endpoint in ROUTES.items():
        router.add_route(path, route(endpoint), methods=["POST"])
    return router


async def _complete(request: Request, endpoint: Endpoint, dispatcher: Dispatcher, metrics: Metrics) -> Response:
    client_headers = request.scope["headers"]
    record = Record(request_id(value_of(client_headers, b"x-request-id"), uuid.uuid4().hex), endpoint)
    finish = Finish(record, metrics)
    try:
        completion = parse(await read_body(request), endpoint)
        call = Call(target_of(request), to_engine(client_headers, record.id.internal), completion, record)
        answer = await unless_gone(dispatcher.answer(call), request.receive)
    except ProxyError as error:
        finish(error.status, error)
        return failure_response(error, record)
    if isinstance(answer, Whole):
        finish(answer.status)
        response = Response(answer.body, answer.status)
        response.raw_headers += [*answer.headers, *record.headers()]
        return response
    return EventRelay(answer, record.headers(), finish.after_start)
