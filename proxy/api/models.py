"""``GET /v1/models``: an engine's own answer."""

import uuid

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proxy.api.failures import failure_response
from proxy.disconnect import unless_gone
from proxy.engine import EngineClient
from proxy.errors import EngineFailure, NoInstance, ProxyError
from proxy.headers import RawHeaders, from_engine, request_id, to_engine, value_of
from proxy.pool import Pool
from proxy.topology import Role

# Those that answer clients come first.
_ROLES = (Role.DECODE, Role.AGGREGATED, Role.PREFILL)


def model_routes(pool: Pool, client: EngineClient) -> APIRouter:
    """The route, answered by the first instance that can."""
    router = APIRouter()

    @router.get("/v1/models", response_model=None)
    async def models(request: Request) -> Response:
        client_headers = request.scope["headers"]
        identity = request_id(value_of(client_headers, b"x-request-id"), uuid.uuid4().hex)
        headers = to_engine(client_headers, identity.internal)
        try:
            return await unless_gone(_ask(pool, client, headers), request.receive)
        except ProxyError as error:
            return failure_response(error, [(b"x-request-id", identity.public.encode())])

    return router


async def _ask(pool: Pool, client: EngineClient, headers: RawHeaders) -> Response:
    failure: ProxyError = NoInstance("No healthy instance.")
    for member in (member for role in _ROLES for member in pool.healthy(role)):
        try:
            upstream = await client.open(member.instance, "GET", "/v1/models", headers)
            try:
                response = Response(await upstream.read(), upstream.status)
            finally:
                await upstream.aclose()
        except EngineFailure as exc:
            failure = exc
            continue
        response.raw_headers += from_engine(upstream.headers)
        return response
    raise failure
