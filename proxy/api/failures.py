"""Errors as HTTP answers."""

from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from proxy.errors import EngineError, EngineRejection, ProxyError, Unauthorized, error_body
from proxy.headers import RawHeaders


def failure_response(error: ProxyError, headers: RawHeaders) -> Response:
    """An engine's own answer unchanged; else the error as OpenAI clients read it."""
    if isinstance(error, EngineRejection | EngineError):
        response = Response(error.body, error.status)
        response.raw_headers += [*error.headers, *headers]
        return response
    response = _response(str(error), error.type, error.status)
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
        return _response("The proxy failed; its log says why.", "InternalServerError", 500)

    handlers: dict[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
        HTTPException: no_route,
        Exception: defect,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def _response(message: str, kind: str, status: int) -> Response:
    return Response(error_body(message, kind, status), status, media_type="application/json")
