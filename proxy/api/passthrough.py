"""Every other route: passed on to one engine as it is, and answered as that engine answers."""

import re
import uuid
from contextlib import AsyncExitStack

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proxy.admission import Admission
from proxy.api.body import SMALL, Body
from proxy.api.failures import failure_response
from proxy.api.finish import Finish
from proxy.api.gate import client_of
from proxy.api.target import target_of
from proxy.completion import Bypass, without_kv_params
from proxy.disconnect import unless_gone
from proxy.endpoint import Endpoint
from proxy.engine import EngineClient
from proxy.errors import EngineFailure, EngineUnreachable, NoInstance, NotForClients, ProxyError
from proxy.evidence import Evidence
from proxy.headers import RawHeaders, from_engine, request_id, to_engine_unchanged, value_of
from proxy.metrics import Metrics
from proxy.pool import Member, Pool
from proxy.record import Phase, Record, ServedBy
from proxy.selection import burden
from proxy.settings import Settings
from proxy.streaming import Passage
from proxy.topology import Role
from proxy.upload import Upload

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# Those that answer clients come first.
_ROLES = (Role.AGGREGATED, Role.DECODE, Role.PREFILL)
# Routes of vLLM 0.32 that operate an engine: whoever may ask questions may not put it to sleep. What it counts is for
# operators, too. Its own patterns end in "$", so they take a path with a line feed at its end; all that begins with
# "/metrics" is its metrics.
_OPERATING = re.compile(
    r"/*(sleep|wake_up|is_sleeping|pause|resume|is_paused|collective_rpc|reset_\w+|release_kv_cache_memory|server_info"
    r"|(is_)?scal(e|ing)_elastic_ep|(start|stop)_profile|kv_event_sources|fault_tolerance|\w*weight\w*"
    r"|(inference/v1/)?abort_requests|v1/(un)?load_lora_adapter)(/|$)|/+metrics"
)


class Passthrough:
    """Answers what no other route does, by one engine of a pool."""

    def __init__(
        self, pool: Pool, client: EngineClient, settings: Settings, admission: Admission, metrics: Metrics
    ) -> None:
        self._pool = pool
        self._client = client
        self._settings = settings
        self._admission = admission
        self._metrics = metrics

    async def __call__(self, request: Request) -> Response:
        headers = request.scope["headers"]
        identity = request_id(value_of(headers, b"x-request-id"), uuid.uuid4().hex)
        route = request.scope["path"]
        record = Record(identity, Endpoint.OTHER, request.method, route, client_of(request.scope))
        if self._pool.connector is not None and request.method == "POST":
            record.bypass = Bypass.ROUTE
        finish = Finish(record, self._metrics, self._admission)
        try:
            if _OPERATING.match(request.scope["path"]):
                raise NotForClients(
                    f"{request.method} {request.scope['path']} operates an engine: ask the engine itself."
                )
            incoming = Body(headers, request.receive, self._settings.body_limit, finish.hold)
            body = await _to_send(request, incoming)
            await finish.enter(incoming.receive)
            passed = to_engine_unchanged(headers, identity.internal)
            return await unless_gone(self._open(request, passed, body, finish), incoming.receive)
        except ProxyError as error:
            finish(error.status, error)
            return failure_response(error, record)
        except Exception:  # a defect: logged and answered further out, but its place must be given back here
            record.failure = "defect"
            finish(500)
            raise

    async def _open(
        self, request: Request, headers: RawHeaders, body: bytes | Upload | None, finish: Finish
    ) -> Response:
        """One engine's answer. The next engine is asked when one fails and nothing was sent, or nothing is changed."""
        reads_only = _reads_only(request)
        failure: ProxyError = NoInstance("No instance serves now.")
        for member in self._candidates(any_role=reads_only):
            try:
                return await self._ask(request, headers, body, member, finish)
            except EngineFailure as exc:
                if not reads_only and not isinstance(exc, EngineUnreachable):
                    raise
                failure = exc
        raise failure

    def _candidates(self, *, any_role: bool) -> list[Member]:
        """In the order in which they are asked: those of the main pool come first."""
        by_role = [
            sorted(self._pool.candidates(role, pool=pool), key=burden) for pool in self._pool.names for role in _ROLES
        ]
        if any_role:
            return [member for members in by_role for member in members]
        return next((members for members in by_role if members), [])

    async def _ask(
        self, request: Request, headers: RawHeaders, body: bytes | Upload | None, member: Member, finish: Finish
    ) -> Response:
        record = finish.record
        record.decode = member.instance.name
        record.phase = Phase.FIRST_EVENT
        evidence = Evidence(member, self._metrics)
        async with AsyncExitStack() as resources:
            resources.enter_context(self._pool.using(member))
            target, limits = target_of(request.scope), self._settings.timeouts.decode
            try:
                upstream = await self._client.open(member.instance, request.method, target, headers, body, limits)
            except EngineFailure as failure:
                evidence.settle(failure)
                raise
            resources.push_async_callback(upstream.aclose)
            record.path, record.phase = ServedBy.AGGREGATED, Phase.ANSWER
            told = [*_with_own_location(from_engine(upstream.headers), member.instance.url), *record.headers()]

            def at_end(status: int, error: ProxyError | None) -> None:
                if error is not None:  # that a route of any kind was answered proves nothing
                    evidence.settle(error)
                finish.after_start(status, error)

            return Passage(upstream, told, resources.pop_all(), at_end)


def passthrough_routes(passthrough: Passthrough) -> APIRouter:
    """The route that matches whatever no other does."""
    router = APIRouter()

    async def pass_on(request: Request) -> Response:
        return await passthrough(request)

    router.add_route("/{path:path}", pass_on, methods=_METHODS)
    return router


async def _to_send(request: Request, body: Body) -> bytes | Upload | None:
    """JSON is looked into, and what may be sent twice is kept; of all else there is never more than a piece here."""
    if body.is_empty:
        return None
    if "json" in (value_of(request.scope["headers"], b"content-type") or "").lower():
        return without_kv_params(await body.whole())
    if _reads_only(request) or (body.length is not None and body.length <= SMALL):
        return await body.whole()
    return body.upload()


def _reads_only(request: Request) -> bool:
    return request.method in {"GET", "HEAD", "OPTIONS"}


def _with_own_location(headers: RawHeaders, engine: str) -> RawHeaders:
    """An engine redirects to its own address, which is none for clients: only the path is left."""
    prefix = engine.encode() + b"/"
    return [
        (name, value[len(prefix) - 1 :] if name == b"location" and value.startswith(prefix) else value)
        for name, value in headers
    ]
