"""Composition root: a configuration becomes an ASGI application."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from proxy.admission import Admission
from proxy.api.completions import Divided, completion_routes
from proxy.api.failures import add_failure_handlers
from proxy.api.gate import Gate
from proxy.api.ops import ops_routes, public_ops_routes
from proxy.api.overview import Overview, overview_routes
from proxy.api.page import page_routes
from proxy.api.passthrough import Passthrough, passthrough_routes
from proxy.bootstrap import Bootstrap
from proxy.config import ProxyConfig
from proxy.dispatch import Dispatcher
from proxy.engine import EngineClient
from proxy.engines_page import EnginesPage
from proxy.evidence import NoEvidence
from proxy.exchange import Exchange
from proxy.experiment.gauges import SplitGauges
from proxy.experiment.observer import Observer
from proxy.experiment.shadow import Shadow
from proxy.exposition import Exposition
from proxy.fallback import Answering, Fallback
from proxy.follow import ConfigFollower
from proxy.gauges import Gauges
from proxy.handover import HandOver
from proxy.health.monitor import HealthMonitor
from proxy.keys import Keyring, engine_key
from proxy.metrics import Metrics
from proxy.overview.failures import Failures
from proxy.overview.history import History
from proxy.overview.totals import Totals
from proxy.pool import Pool
from proxy.proof.canary import Canary
from proxy.proof.drift import DriftWatch
from proxy.proof.prover import Prover
from proxy.record import Outcome, Record
from proxy.reference import load as load_reference
from proxy.release import Releases
from proxy.rules import Rules
from proxy.settings import Policy, Settings
from proxy.splitter import Splitter
from proxy.steering import Steering
from proxy.tracing import tracer as tracer_of

if TYPE_CHECKING:
    from proxy.discovery.discoverer import Discoverer


@dataclass(frozen=True, slots=True)
class Apps:
    """What is served where."""

    public: ASGIApp
    admin: ASGIApp | None
    """For those who operate the proxy, when they have an address of their own."""


def create_apps(
    config: ProxyConfig, path: Path | None = None, admission: Admission | None = None, shared: Path | None = None
) -> Apps:
    """The proxy. It probes the instances once before it takes requests, and then in every interval.

    ``path`` is the file of the configuration, if the proxy shall follow it. Whoever passes ``admission`` can close it:
    then no new work is taken. ``shared`` is the folder of the metrics of several processes. Raises
    :class:`proxy.config.ConfigError` when the environment lacks the engines' key, or packages for tracing are
    missing, or reference answers cannot be read.
    """
    registry = CollectorRegistry()
    settings = config.settings
    pool = Pool(config)
    admission = admission or Admission(settings.admission)
    failures = Failures(shared)
    forgets = config.discovery is not None and shared is None  # what processes share cannot be dropped
    metrics = Metrics(registry, pool, failures, forgets=forgets)
    exposition = Exposition(registry, shared, lambda: {member.instance.name for member in pool.members}, metrics.flush)
    totals = Totals(registry, metrics.flush, pool, admission, settings.frozen_after, shared)
    history = History(totals.sample)
    client = EngineClient(engine_key(settings, os.environ))
    tracer = tracer_of(settings.tracing)
    releases = Releases(pool, client, metrics)
    monitor = HealthMonitor(pool, client, interval=settings.probe_interval, patience=settings.frozen_after)
    steering = Steering(settings, Random())
    apart = Metrics(CollectorRegistry(), pool, forgets=forgets)
    prover = _prover(settings, pool, client, steering, metrics, apart, releases)
    drift = None
    if settings.reference is not None:
        answers = load_reference(Path(settings.reference.file))
        drift = DriftWatch(pool, client, answers, settings.reference.interval)
    discoverer = _discoverer(config, pool, monitor)
    splitter = Splitter(config)
    observer = Observer(splitter, path)
    registry.register(SplitGauges(splitter))

    def follow(new: ProxyConfig) -> None:
        (pool if discoverer is None else discoverer).follow(new)
        splitter.follow(new)

    known_at = None if discoverer is None else lambda: discoverer.known_at
    estimates = settings.selection.prefill is Policy.TTFT
    registry.register(Gauges(pool, admission, settings.alerts, queues=estimates, known_at=known_at))
    follower = None if path is None else ConfigFollower(path, config, pool, monitor, follow)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            if discoverer is not None:
                await discoverer.first(lambda: admission.closing)
            observer.look()  # a guard may have ended the experiment before this process began
            await monitor.check()
            await prover.first(lambda: admission.closing)
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(monitor.run(), name="health monitor")
                others = [
                    tasks.create_task(prover.run(), name="canaries"),
                    tasks.create_task(history.run(), name="history"),
                    tasks.create_task(observer.run(), name="experiment"),
                ]
                if follower is not None:
                    others.append(tasks.create_task(follower.run(), name="configuration"))
                if discoverer is not None:
                    others.append(tasks.create_task(discoverer.run(), name="discovery"))
                if drift is not None:
                    others.append(tasks.create_task(drift.run(), name="reference answers"))
                if shared is not None:
                    others.append(tasks.create_task(exposition.run(), name="gauges"))
                    others.append(tasks.create_task(totals.run(), name="totals"))
                    others.append(tasks.create_task(failures.run(), name="failures"))
                yield
                for task in (watching, *others):
                    task.cancel()
        finally:
            await shadow.aclose()
            observer.look()
            if discoverer is not None:
                await discoverer.aclose()
            await prover.aclose()
            await releases.aclose()
            await client.aclose()
            metrics.flush()
            if tracer is not None:
                await tracer.aclose()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    dispatcher: Answering = Dispatcher(settings, pool, steering, client, metrics, releases)
    if settings.pools.rules or any(instance.pool for instance in config.topology.instances):
        dispatcher = Fallback(dispatcher, pool, metrics)
    shadow = Shadow(splitter, dispatcher, metrics, observer)
    rules = Rules(settings.pools)

    def told(record: Record, outcome: Outcome) -> None:
        rules.finished(record, outcome)
        observer.finished(record, outcome)

    divided = Divided(rules, splitter, shadow, told)
    engines = EnginesPage(pool, settings.frozen_after)
    ops = ops_routes(settings, pool, admission, follower, discoverer, exposition, engines, prover, observer)
    overview = Overview(settings, pool, admission, follower, discoverer, totals, history, failures, path)
    ops.include_router(overview_routes(overview))
    ops.include_router(page_routes())
    operators = Keyring(settings.admin_keys) if settings.admin_keys else None
    admin = None
    if settings.admin is not None:
        inner = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
        inner.include_router(ops)
        add_failure_handlers(inner)
        admin = Gate(
            {}, inner, keyring=None, operators=operators, hides_keys=False, admission=admission, metrics=metrics
        )
        ops = public_ops_routes()
    app.include_router(ops)
    passthrough = Passthrough(pool, client, settings, admission, metrics)
    app.include_router(passthrough_routes(passthrough))  # the last: it matches everything
    add_failure_handlers(app)
    keyring = Keyring(settings.client_keys) if settings.client_keys else None
    hides_keys = keyring is not None or settings.engine_key_env is not None
    routes = completion_routes(dispatcher, settings, admission, metrics, tracer, divided)
    gate = Gate(
        *(routes, app),
        keyring=keyring,
        operators=operators,
        hides_keys=hides_keys,
        admission=admission,
        metrics=metrics,
    )
    return Apps(gate, admin)


def _discoverer(config: ProxyConfig, pool: Pool, monitor: HealthMonitor) -> "Discoverer | None":
    if config.discovery is None:
        return None
    from proxy.discovery.discoverer import Discoverer  # its client takes 0.3 s and 40 MB

    return Discoverer(config, config.discovery, pool, monitor, os.environ)


def _prover(
    settings: Settings,
    pool: Pool,
    client: EngineClient,
    steering: Steering,
    metrics: Metrics,
    apart: Metrics,
    releases: Releases,
) -> Prover:
    """Its canaries go the way of requests, but are counted ``apart``, and nobody is blamed for them on the way."""
    exchange = Exchange(settings.timeouts, pool, steering, client)
    bootstrap = Bootstrap(client, settings.timeouts.prefill)
    handover = HandOver(exchange, pool, steering, bootstrap, apart, releases, NoEvidence)
    canary = Canary(settings.canary, client, exchange, handover, apart, Random())
    return Prover(settings.canary, pool, canary, metrics)
