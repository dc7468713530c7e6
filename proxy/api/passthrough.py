"""Every other route: passed on to one engine as it is, and answered as that engine answers."""

import re
import uuid
from contextlib import AsyncExitStack

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proxy.api.body import read_body
from proxy.api.failures import failure_response
from proxy.api.finish import Finish
from proxy.completion import Bypass, without_kv_params
from proxy.disconnect import unless_gone
from proxy.engine import EngineClient
from proxy.errors import EngineFailure, NoInstance, NotForClients, ProxyError
from proxy.headers import RawHeaders, from_engine, request_id, to_engine_unchanged, value_of
from proxy.metrics import Metrics
from proxy.pool import Member, Pool
from proxy.record import Endpoint, Record, ServedBy
from proxy.selection import least_in_flight
from proxy.settings import Leg
from proxy.streaming import Passage
from proxy.topology import Role

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# Those that answer clients come first.
_ROLES = (Role.AGGREGATED, Role.DECODE, Role.PREFILL)
# Routes of vLLM 0.32 that operate an engine: whoever may ask questions may not put it to sleep.
_OPERATING = re.compile(
    r"/*(sleep|wake_up|is_sleeping|pause|resume|is_paused|collective_rpc|reset_\w+|release_kv_cache_memory|server_info"
    r"|(is_)?scal(e|ing)_elastic_ep|(start|stop)_profile|kv_event_sources|fault_tolerance|\w*weight\w*"
    r"|(inference/v1/)?abort_requests|v1/(un)?load_lora_adapter)(/|\Z)"
)


def passthrough_routes(pool: Pool, client: EngineClient, limits: Leg, metrics: Metrics, *, with_pd: bool) -> APIRouter:
    """The route that matches whatever no other does; ``with_pd``: prefill and decode are configured."""
    router = APIRouter()

    async def pass_on(request: Request) -> Response:
        headers = request.scope["headers"]
        identity = request_id(value_of(headers, b"x-request-id"), uuid.uuid4().hex)
        record = Record(identity, Endpoint.OTHER)
        if with_pd and request.method == "POST":
            record.bypass = Bypass.ROUTE
        finish = Finish(record, metrics)
        try:
            body = await _checked_body(request)
            passed = to_engine_unchanged(headers, identity.internal)
            return await unless_gone(_open(request, passed, body, pool, client, limits, finish), request.receive)
        except ProxyError as error:
            finish(error.status, error)
            return failure_response(error, record.headers())

    router.add_route("/{path:path}", pass_on, methods=_METHODS)
    return router


async def _checked_body(request: Request) -> bytes:
    if _OPERATING.match(request.scope["path"]):
        raise NotForClients(f"{request.method} {request.scope['path']} operates an engine: ask the engine itself.")
    body = await read_body(request)
    is_json = "json" in (value_of(request.scope["headers"], b"content-type") or "").lower()
    return without_kv_params(body) if is_json else body


async def _open(
    request: Request,
    headers: RawHeaders,
    body: bytes,
    pool: Pool,
    client: EngineClient,
    limits: Leg,
    finish: Finish,
) -> Response:
    """One engine's answer; a question that changes nothing goes to the next engine when one fails."""
    failure: ProxyError = NoInstance("No healthy instance.")
    for member in _candidates(pool, several=request.method in {"GET", "HEAD", "OPTIONS"}):
        try:
            return await _ask(request, headers, body, member, pool, client, limits, finish)
        except EngineFailure as exc:
            finish.failed(exc)
            failure = exc
    raise failure


def _candidates(pool: Pool, *, several: bool) -> list[Member]:
    members = [member for role in _ROLES for member in pool.healthy(role)]
    if several or not members:
        return members
    same_role = [member for member in members if member.instance.role is members[0].instance.role]
    return [least_in_flight(same_role)]


async def _ask(
    request: Request,
    headers: RawHeaders,
    body: bytes,
    member: Member,
    pool: Pool,
    client: EngineClient,
    limits: Leg,
    finish: Finish,
) -> Response:
    query = request.scope["query_string"].decode("latin-1")
    target = request.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
    record = finish.record
    record.decode = member.instance.name
    async with AsyncExitStack() as resources:
        resources.enter_context(pool.using(member))
        upstream = await client.open(member.instance, request.method, target, headers, body or None, limits)
        resources.push_async_callback(upstream.aclose)
        record.path = ServedBy.AGGREGATED
        told = [*from_engine(upstream.headers), *record.headers()]
        return Passage(upstream, told, resources.pop_all(), finish.after_start)
