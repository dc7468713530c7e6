"""``GET /health``, ``/ready`` and ``/metrics``: for those who operate the proxy."""

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.responses import JSONResponse, Response

from proxy.config import ProxyConfig
from proxy.drain import Drain
from proxy.pool import Pool
from proxy.settings import FailurePolicy
from proxy.topology import Role


def ops_routes(config: ProxyConfig, pool: Pool, registry: CollectorRegistry, drain: Drain) -> APIRouter:
    """The routes over the live state."""
    router = APIRouter()

    @router.get("/health", response_model=None)
    async def health() -> Response:
        return Response()

    @router.get("/ready", response_model=None)
    async def ready() -> Response:
        state = readiness(config, pool, draining=drain.closed)
        return JSONResponse(state, 200 if state["ready"] else 503)

    @router.get("/metrics", response_model=None)
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router


def readiness(config: ProxyConfig, pool: Pool, *, draining: bool) -> dict[str, object]:
    """Which ways of serving work now, and why not. Ready means: an ordinary request would be answered."""
    with_pd = config.topology.connector is not None
    pd = with_pd and bool(pool.healthy(Role.PREFILL)) and bool(pool.healthy(Role.DECODE))
    may_fall_back = not with_pd or config.settings.failure_policy is FailurePolicy.AGGREGATE
    aggregated = may_fall_back and bool(pool.healthy(Role.AGGREGATED, Role.DECODE))
    return {
        "ready": (pd or aggregated) and not draining,
        "draining": draining,
        "modes": {"pd": pd, "aggregated": aggregated},
        "instances": [
            {
                "name": member.instance.name,
                "role": member.instance.role,
                "url": member.instance.url,
                "healthy": member.healthy,
                "in_flight": member.in_flight,
                "reason": member.reason,
            }
            for member in pool.members
        ],
    }
