"""``GET /health``, ``/ready``, ``/pairs``, ``/experiment``, ``/metrics`` and ``/metrics/engines``, for operators."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from fastapi import APIRouter
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from proxy.admission import Admission
from proxy.api.gate import client_of, operator_of
from proxy.engines_page import EnginesPage
from proxy.experiment.answer import ExperimentAnswer
from proxy.experiment.observer import Observer
from proxy.exposition import Exposition
from proxy.follow import ConfigFollower
from proxy.pair import Standing
from proxy.pool import Member, Pool
from proxy.pools import by_name
from proxy.proof.proof import Proof
from proxy.proof.prover import Prover
from proxy.settings import FailurePolicy, Settings
from proxy.topology import Role

if TYPE_CHECKING:
    from proxy.discovery.discoverer import Discoverer

SEEN = "as the cluster says"
"""How the instances are when there is no problem with them."""
_READING = ["GET", "HEAD"]
"""Probes and load balancers ask either way."""


def ops_routes(
    settings: Settings,
    pool: Pool,
    admission: Admission,
    follower: ConfigFollower | None,
    discoverer: "Discoverer | None",
    exposition: Exposition,
    engines: EnginesPage,
    prover: Prover,
    observer: Observer,
) -> APIRouter:
    """The routes over the live state."""
    router = APIRouter()

    router.add_api_route("/health", _health, methods=_READING, response_model=None)

    @router.api_route("/ready", methods=_READING, response_model=None)
    async def ready(request: Request) -> Response:
        state = readiness(settings, pool, draining=admission.closing)
        if follower is not None:
            state["configuration"] = follower.problem or "as in the file"
        if discoverer is not None:
            state["discovery"] = discoverer.problem or SEEN
        status = 200 if state["ready"] else 503
        is_known = client_of(request.scope) is not None or operator_of(request.scope) is not None
        if settings.client_keys and settings.admin is None and not is_known:
            return JSONResponse({"ready": state["ready"], "draining": state["draining"]}, status)
        return JSONResponse(state, status)

    @router.api_route("/pairs", methods=_READING, response_model=None)
    async def pairs() -> Response:
        return JSONResponse(matrix(pool))

    @router.post("/pairs/prove", response_model=None)
    async def prove() -> Response:
        return JSONResponse(matrix(pool, await prover.prove_all()))

    @router.api_route("/experiment", methods=_READING, response_model=None)
    async def experiment() -> Response:
        told = observer.document()
        return JSONResponse(TypeAdapter(ExperimentAnswer).dump_python(told, mode="json"))

    @router.api_route("/metrics", methods=_READING, response_model=None)
    async def metrics(request: Request) -> Response:
        text, kind = exposition.text(request.headers.get("accept", ""))
        return Response(text, headers={"content-type": kind})

    @router.api_route("/metrics/engines", methods=_READING, response_model=None)
    async def metrics_of_engines(request: Request) -> Response:
        # Reading a dozen engines' texts takes a tenth of a second, in which streams shall go on.
        text, kind = await asyncio.to_thread(engines.text, request.headers.get("accept", ""))
        return Response(text, headers={"content-type": kind})

    return router


def public_ops_routes() -> APIRouter:
    """What clients are answered when those who operate the proxy have an address of their own."""
    router = APIRouter()
    router.add_api_route("/health", _health, methods=_READING, response_model=None)

    # Else they would be passed on: the engines' metrics are not for clients.
    @router.get("/ready", response_model=None)
    @router.get("/pairs", response_model=None)
    @router.post("/pairs/prove", response_model=None)
    @router.get("/experiment", response_model=None)
    @router.get("/overview", response_model=None)
    @router.get("/ui", response_model=None)
    @router.get("/ui/{part:path}", response_model=None)
    @router.get("/metrics", response_model=None)
    @router.get("/metrics/engines", response_model=None)
    async def elsewhere() -> Response:
        raise HTTPException(404)

    return router


async def _health() -> Response:
    return Response()


def matrix(pool: Pool, fresh: Mapping[tuple[str, str], Proof | None] | None = None) -> dict[str, object]:
    """How hand-overs between each prefill and each decode instance went since both run, and who is to blame.

    With ``fresh``, proofs are those, and not the last ones that decided something.
    """
    now = time.monotonic()
    rows = [_row(pool, couple, now) for couple in pool.couples()]
    if fresh is not None:
        for row, pair in zip(rows, pool.pairs(), strict=True):
            proof = fresh.get((pair.prefill, pair.decode))
            row["proof"] = None if proof is None else _proof(proof)
    return {"pairs": rows, "blamed": pool.blamed()}


def _row(pool: Pool, couple: tuple[Member, Member], now: float) -> dict[str, object]:
    pair = pool.pair(*couple)
    away = [f"{each.instance.name}: {each.reason or 'draining'}" for each in couple if not each.usable]
    return {
        "prefill": pair.prefill,
        "decode": pair.decode,
        "standing": Standing.AWAY if away else pair.standing(now),
        "gets_requests": not away and pair.admits(now),
        "handed_over": pair.handed_over,
        "failed": pair.failed,
        "last_handed_over": pair.last_handed_over,
        "reason": "; ".join(away) or pair.reason,
        "proof": None if pair.proof is None else _proof(pair.proof),
    }


def _proof(proof: Proof) -> dict[str, object]:
    return {**asdict(proof), "bytes_per_second": proof.bytes_per_second}


def readiness(settings: Settings, pool: Pool, *, draining: bool) -> dict[str, object]:
    """Which ways of serving work now, and why not. Ready means: an ordinary request would be answered.

    Of several pools one is enough: the others are looked at by whoever reads more than the status.
    """
    modes = {by_name(name): _modes(settings, pool, name) for name in pool.names}
    pd, aggregated = (any(each[mode] for each in modes.values()) for mode in ("pd", "aggregated"))
    return {
        "ready": (pd or aggregated) and not draining,
        "draining": draining,
        "modes": {"pd": pd, "aggregated": aggregated},
        **({"pools": modes} if len(modes) > 1 else {}),
        "instances": instances(pool),
    }


def _modes(settings: Settings, pool: Pool, name: str) -> dict[str, bool]:
    """Of one pool."""
    with_pd = pool.uses_pd(name)
    may_fall_back = not with_pd or settings.failure_policy is FailurePolicy.AGGREGATE
    return {
        "pd": with_pd and pool.has_pair(name),
        "aggregated": may_fall_back and bool(pool.candidates(Role.AGGREGATED, Role.DECODE, pool=name)),
    }


def instances(pool: Pool) -> list[dict[str, object]]:
    """Each instance as it is now, in the order of the topology."""
    now, blamed = time.monotonic(), pool.blamed()
    return [
        {
            "name": member.instance.name,
            "role": member.instance.role,
            "pool": by_name(member.instance.pool),
            "url": member.instance.url,
            "healthy": member.healthy,
            "draining": member.drained,
            "breaker": member.breaker.state(now),
            "in_flight": member.in_flight,
            "reason": member.reason or member.breaker.reason or blamed.get(member.instance.name, ""),
        }
        for member in pool.members
    ]
