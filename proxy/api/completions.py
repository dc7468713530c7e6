"""``POST /v1/completions`` and ``POST /v1/chat/completions``."""

import logging
import uuid

from fastapi import APIRouter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from proxy.api.failures import failure_response
from proxy.completion import parse
from proxy.disconnect import unless_gone
from proxy.dispatch import Call, Dispatcher, Whole
from proxy.errors import BodyTooLarge, ClientGone, EngineFailure, ProxyError
from proxy.headers import request_id, to_engine, value_of
from proxy.metrics import Metrics
from proxy.record import Endpoint, Record
from proxy.streaming import EventRelay

_BODY_LIMIT = 64 * 1024 * 1024

logger = logging.getLogger(__name__)


def completion_routes(dispatcher: Dispatcher, metrics: Metrics) -> APIRouter:
    """The routes, answered by a dispatcher and counted in the metrics."""
    router = APIRouter()

    async def completions(request: Request) -> Response:
        return await _complete(request, Endpoint.COMPLETIONS, dispatcher, metrics)

    async def chat_completions(request: Request) -> Response:
        return await _complete(request, Endpoint.CHAT, dispatcher, metrics)

    # Plain routes: the framework's own would look for parameters to inject, a twentieth of all work per request.
    router.add_route("/v1/completions", completions, methods=["POST"])
    router.add_route("/v1/chat/completions", chat_completions, methods=["POST"])
    return router


async def _complete(request: Request, endpoint: Endpoint, dispatcher: Dispatcher, metrics: Metrics) -> Response:
    client_headers = request.scope["headers"]
    record = Record(request_id(value_of(client_headers, b"x-request-id"), uuid.uuid4().hex), endpoint)

    def finish(status: int, error: ProxyError | None = None) -> None:
        if error is not None:
            record.failure = error.kind if isinstance(error, EngineFailure) else type(error).__name__
        if isinstance(error, ClientGone):
            metrics.client_disconnects.inc()
        metrics.finished(record, status)
        logger.info("%s", record.line(status))

    try:
        completion = parse(await _body(request), chat=endpoint is Endpoint.CHAT)
        call = Call(request.url.path, to_engine(client_headers, record.id.internal), completion, record)
        answer = await unless_gone(dispatcher.answer(call), request.receive)
    except ProxyError as error:
        finish(error.status, error)
        return failure_response(error, record.headers())
    if isinstance(answer, Whole):
        finish(answer.status)
        response = Response(answer.body, answer.status)
        response.raw_headers += [*answer.headers, *record.headers()]
        return response

    def ended(error: ProxyError | None) -> None:
        if isinstance(error, EngineFailure):
            metrics.failed(error)
        finish(error.status if isinstance(error, ClientGone) else 200, error)

    return EventRelay(answer, record.headers(), ended)


async def _body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > _BODY_LIMIT:
                raise BodyTooLarge(f"The request's body is larger than {_BODY_LIMIT} bytes.")
            parts.append(part)
    except ClientDisconnect as exc:
        raise ClientGone("The client closed the connection.") from exc
    return b"".join(parts)
