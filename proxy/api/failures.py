"""Errors as HTTP answers."""

import asyncio
from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from proxy.dialects import DIALECTS
from proxy.errors import EngineError, EngineRejection, ProxyError, Unauthorized, error_body
from proxy.record import Record

_RETRY_AFTER = 2
"""Seconds; for an engine that is overloaded or about to end."""
_LINGER = 5.0
"""Seconds for which a body that nobody wants is still taken."""


class Refusal(Response):
    """An answer before the request's end, after which the connection is closed.

    What the client is still sending is taken for a while and dropped: were the connection closed at once, the client's
    system could throw the answer away before the client has seen it.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers["connection"] = "close"
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        try:
            async with asyncio.timeout(_LINGER):
                while (await receive()).get("more_body", False):
                    pass
        except TimeoutError:
            pass
        await send({"type": "http.response.body", "body": b""})


def failure_response(error: ProxyError, record: Record, *, unread: bool = False) -> Response:
    """An engine's own answer unchanged; else the error as clients of the route read it.

    ``unread``: of the request's body nothing was read.
    """
    headers = record.headers()
    if isinstance(error, EngineRejection | EngineError):
        response = Response(error.body, error.status)
        response.raw_headers += [*error.headers, *headers]
        if error.status == 503 and "retry-after" not in response.headers:  # engines do not say when
            response.headers["retry-after"] = str(_RETRY_AFTER)
        return response
    body = DIALECTS[record.endpoint].error_body(str(error), error.type, error.status)
    kind = Refusal if unread or error.unread else Response
    response = kind(body, error.status, media_type="application/json")
    if error.retry_after is not None:
        response.headers["retry-after"] = str(error.retry_after)
    if isinstance(error, Unauthorized):
        response.headers["www-authenticate"] = "Bearer"
    if error.closes:
        response.headers["connection"] = "close"
    response.raw_headers += headers
    return response


def add_failure_handlers(app: FastAPI) -> None:
    """Answer unknown routes and defects of the proxy in the same shape."""

    async def no_route(request: Request, exc: Exception) -> Response:
        status = exc.status_code if isinstance(exc, HTTPException) else 500
        name = "NotFoundError" if status == 404 else "BadRequestError"
        response = _response(f"{request.method} {request.url.path} is not served here.", name, status)
        response.headers.update(getattr(exc, "headers", None) or {})
        return response

    async def defect(request: Request, exc: Exception) -> Response:
        return defect_response()

    handlers: dict[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
        HTTPException: no_route,
        Exception: defect,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def defect_response(record: Record | None = None) -> Response:
    """What a client is told of a defect of the proxy."""
    response = _response("The proxy failed; its log says why.", "InternalServerError", 500)
    if record is not None:
        response.raw_headers += record.headers()
    return response


def _response(message: str, kind: str, status: int) -> Response:
    return Response(error_body(message, kind, status), status, media_type="application/json")
