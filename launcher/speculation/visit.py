"""Starts the deployment with one setting and measures it at several loads."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import httpx

from launcher.measure.conditions_here import conditions
from launcher.measure.driver import drive
from launcher.measure.figures import figures
from launcher.measure.figures_shape import Distribution, Objectives, Span
from launcher.measure.interval import Interval
from launcher.measure.load import Closed
from launcher.measure.others import Others
from launcher.measure.request import Request
from launcher.measure.served import measured
from launcher.measure.target import Target
from launcher.measure.telling import Tell
from launcher.profile import Profile
from launcher.speculation import methods
from launcher.speculation.counters import Counts, counts
from launcher.speculation.evidence import Point
from launcher.speculation.setting import OFF, Cell, Setting, Start, Visit

CONDITIONS = "conditions.json"
"""In the work folder: under which the first start was measured."""
_WARM_UP = 8
"""Requests that are not counted after a start: kernels are compiled with the first ones."""
_RAMP = 0.1
"""Share of a cell's time that is not counted: all clients begin at once, and take a while to spread."""
_DISTURBED = 0.15
"""Share of the machine taken by others, above which a load is measured once more."""
Visitor = Callable[[Start, Sequence[Cell], Callable[[Visit], None]], Awaitable[None]]
"""Starts the deployment for these loads of a start, and tells of each as soon as it is measured."""


@dataclass(frozen=True, slots=True)
class Deployments:
    """A :data:`Visitor` of real deployments."""

    reference: str
    overrides: Sequence[str]
    profile: Profile
    """With the overrides."""
    settings: dict[str, methods.Written]
    """Methods -> what a profile says, but for K."""
    requests: Sequence[Request]
    cells: Sequence[Cell]
    """All loads of the tuning: each has requests of its own, so that no prefix cache has them from another."""
    objectives: Objectives
    seconds: float
    """Of one load."""
    folder: Path
    command: str
    tell: Tell
    key: str | None = None
    """A client's, where the profile's proxy asks for one."""

    async def __call__(self, start: Start, cells: Sequence[Cell], add: Callable[[Visit], None]) -> None:
        """Raises what the start of the deployment raises."""
        what = methods.overrides(self.profile, methods.written(start.setting, self.settings))

        async def work(target: Target) -> None:
            await self._keep_conditions(target)
            async with httpx.AsyncClient(trust_env=False, verify=False) as client:
                warm = self._requests(len(self.cells))[:_WARM_UP]
                await drive(target, warm, Closed(max(each.concurrency for each in cells)), tell=self.tell)
                for cell in cells:
                    visit = await self._measured(client, target, start, cell)
                    if visit.others > _DISTURBED:
                        self.tell(f"other programs took {visit.others:.0%} of the machine: measuring again", 0, 0)
                        again = await self._measured(client, target, start, cell)
                        visit = min(visit, again, key=lambda each: each.others)
                    add(visit)

        folder = self.folder / f"{start.stage} {start.number}".replace(" ", "-")
        await measured(self.reference, [*self.overrides, *what], folder, work, self.tell, key=self.key)

    async def _measured(self, client: httpx.AsyncClient, target: Target, start: Start, cell: Cell) -> Visit:
        others, before = Others(), await counts(client, target.engines)
        load = Closed(cell.concurrency)
        samples = await drive(target, self._at(cell), load, seconds=self.seconds, tell=self.tell)
        after = await counts(client, target.engines)
        counted = None if before is None or after is None else after - before
        found = figures(samples, Span(_RAMP * self.seconds, self.seconds), self.objectives)
        point = Point(
            method=start.setting.method if start.setting.k else OFF.method,
            k=start.setting.k,
            concurrency=cell.concurrency,
            temperature=cell.temperature,
            goodput=found.good_output_rate,
            throughput=found.output_rate,
            tpot=_median(found.tpot),
            ttft=_median(found.ttft),
            acceptance=_of(counted, start.setting, lambda each: each.acceptance),
            acceptance_length=_of(counted, start.setting, lambda each: each.length),
            requests=found.requests,
            failed=found.failed,
        )
        return Visit(start.stage, start.number, start.setting.name, point, others.share())

    async def _keep_conditions(self, target: Target) -> None:
        file = self.folder / CONDITIONS
        if not file.exists():
            found = await conditions(target, self.command)
            file.write_text(json.dumps(asdict(found), indent=1), "utf-8")

    def _at(self, cell: Cell) -> list[Request]:
        """The same ones at every start."""
        mine = self._requests(self.cells.index(cell))
        return [replace(each, body={**each.body, "temperature": cell.temperature}) for each in mine]

    def _requests(self, part: int) -> Sequence[Request]:
        """Of as many parts as there are loads, and one for warming up; of few requests all of them."""
        parts = len(self.cells) + 1
        return self.requests[part::parts] if len(self.requests) >= _WARM_UP * parts else self.requests


def _median(of: Distribution) -> Interval:
    return of.percentiles[50] or replace(of.mean, low=float("-inf"), high=float("inf"))


def _of(counted: Counts | None, setting: Setting, what: Callable[[Counts], float | None]) -> float | None:
    return None if counted is None or not setting.k else what(counted)
