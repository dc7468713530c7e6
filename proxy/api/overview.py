"""``GET /overview``: all that a person wants to see, in one document."""

import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from proxy.admission import Admission
from proxy.agreement import Fact
from proxy.api.gate import operator_of
from proxy.api.ops import SEEN, instances, matrix, readiness
from proxy.follow import ConfigFollower
from proxy.overview.about import about
from proxy.overview.condition import condition
from proxy.overview.failures import Failures
from proxy.overview.history import History
from proxy.overview.present import fresh
from proxy.overview.totals import Totals
from proxy.pool import Member, Pool
from proxy.settings import Settings

if TYPE_CHECKING:
    from proxy.discovery.discoverer import Discoverer


class Overview:
    """Reads the live state; ``path`` is the configuration's, beside which the launcher tells of the deployment."""

    def __init__(
        self,
        settings: Settings,
        pool: Pool,
        admission: Admission,
        follower: ConfigFollower | None,
        discoverer: "Discoverer | None",
        totals: Totals,
        history: History,
        failures: Failures,
        path: Path | None,
    ) -> None:
        self._settings = settings
        self._pool = pool
        self._admission = admission
        self._follower = follower
        self._discoverer = discoverer
        self._totals = totals
        self._history = history
        self._failures = failures
        self._path = path
        self._started_at = time.time()
        self._version = _version()

    def document(self, operator: str | None) -> dict[str, object]:
        """All of it; ``operator`` is the name of the key of one who may act."""
        state = readiness(self._settings, self._pool, draining=self._admission.closing)
        unseen = "" if self._discoverer is None else self._discoverer.problem
        found = condition(self._pool, ready=bool(state["ready"]), draining=self._admission.closing, unseen=unseen)
        in_flight = self._totals.present().in_flight or {}
        problem = "" if self._follower is None else self._follower.problem
        return {
            "at": time.time(),
            "health": found.health,
            "reasons": found.reasons,
            "proxy": {
                "version": self._version,
                "started_at": self._started_at,
                "workers": self._settings.workers,
                "ready": state["ready"],
                "draining": state["draining"],
                "modes": state["modes"],
                "configuration": problem or "as in the file",
                "discovery": None if self._discoverer is None else self._discoverer.problem or SEEN,
                "actions": self._actions(operator),
            },
            "about": about(self._path),
            "instances": [
                {**row, "in_flight": in_flight[member.instance.name], **self._more(member)}
                for row, member in zip(instances(self._pool), self._pool.members, strict=True)
            ],
            **matrix(self._pool),
            "failures": self._failures.latest(),
            "history": {
                "interval": self._history.interval,
                "points": [asdict(point) for point in self._history.points],
            },
            "thresholds": asdict(self._settings.alerts),
        }

    def _more(self, member: Member) -> dict[str, object]:
        """What is known of an instance besides what ``/ready`` says."""
        told, recently = fresh(member, self._settings.frozen_after), member.recently
        return {
            "frozen": member.progress.frozen,
            "running": told and told.running,
            "waiting": told and told.waiting,
            "kv_cache_usage": told and told.usage,
            "acceptance_rate": told and recently.acceptance,
            "mean_acceptance_length": told and recently.accepted_length,
            "generated_per_second": told and recently.generated_per_second,
            "version": member.observed.get(Fact.VERSION),
            "model": member.observed.get(Fact.SERVED_NAMES),
        }

    def _actions(self, operator: str | None) -> str:
        """Whether whoever asks may do what changes something."""
        if not self._settings.admin_keys:
            return "unconfigured"
        return "locked" if operator is None else "unlocked"


def overview_routes(overview: Overview) -> APIRouter:
    """The route."""
    router = APIRouter()

    @router.api_route("/overview", methods=["GET", "HEAD"], response_model=None)
    async def all_of_it(request: Request) -> Response:
        return JSONResponse(overview.document(operator_of(request.scope)), headers={"cache-control": "no-store"})

    return router


def _version() -> str | None:
    try:
        return version("duet-serve")
    except PackageNotFoundError:  # run from a checkout
        return None
