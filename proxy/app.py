"""Composition root: a configuration becomes an ASGI application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from proxy.api.completions import completion_routes
from proxy.api.failures import add_failure_handlers
from proxy.api.gate import Gate
from proxy.api.ops import ops_routes
from proxy.api.passthrough import passthrough_routes
from proxy.config import ProxyConfig
from proxy.dispatch import Dispatcher
from proxy.drain import Drain
from proxy.engine import EngineClient
from proxy.health.monitor import HealthMonitor
from proxy.metrics import Metrics
from proxy.pool import Pool

_PROBE_TIMEOUT = 2.0


def create_app(config: ProxyConfig, drain: Drain | None = None) -> FastAPI:
    """The proxy, which takes work until ``drain`` is closed.

    It probes the instances once before it takes requests, and then in every interval.
    """
    drain = Drain() if drain is None else drain
    registry = CollectorRegistry()
    pool = Pool(config.topology)
    metrics = Metrics(registry, pool)
    client = EngineClient()
    monitor = HealthMonitor(pool, client, interval=config.settings.probe_interval, timeout=_PROBE_TIMEOUT)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            await monitor.check()
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(monitor.run(), name="health monitor")
                yield
                watching.cancel()
        finally:
            await client.aclose()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    dispatcher = Dispatcher(config, pool, client, metrics)
    app.include_router(completion_routes(dispatcher, metrics))
    app.include_router(ops_routes(config, pool, registry, drain))
    with_pd = config.topology.connector is not None
    app.include_router(
        passthrough_routes(pool, client, config.settings.timeouts.decode, metrics, with_pd=with_pd)
    )  # the last: it matches everything
    add_failure_handlers(app)
    app.add_middleware(Gate, drain=drain, metrics=metrics)
    return app
