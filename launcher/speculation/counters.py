"""Reads what engines count of speculation."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from launcher.advice.look import look
from launcher.measure.target import Engine
from proxy import engine_instruments as vllm

_PATIENCE = 10.0
GENERATING = frozenset({"decode", "aggregated"})


@dataclass(frozen=True, slots=True)
class Counts:
    """Of all engines that generate, since they started; or between two looks."""

    generated: float
    drafts: float
    drafted: float
    accepted: float

    def __sub__(self, before: "Counts") -> "Counts":
        return Counts(
            self.generated - before.generated,
            self.drafts - before.drafts,
            self.drafted - before.drafted,
            self.accepted - before.accepted,
        )

    @property
    def acceptance(self) -> float | None:
        """Of the drafted tokens; ``None`` where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted > 0 else None

    @property
    def length(self) -> float | None:
        """Tokens by step and request, steps without a draft included: each has one of the model's own."""
        steps = self.generated - self.accepted
        return self.generated / steps if self.drafted > 0 and steps > 0 else None


async def counts(client: httpx.AsyncClient, engines: Sequence[Engine]) -> Counts | None:
    """``None`` where an engine that generates does not tell, or there is none that is known."""
    generating = [each for each in engines if each.role in GENERATING]
    readings = await asyncio.gather(*(look(client, each.metrics, _PATIENCE) for each in generating))
    known = [each for each in readings if each is not None]
    if not known or len(known) < len(generating):
        return None

    def total(name: str) -> float:
        return sum(each.sum(name) or 0.0 for each in known)

    return Counts(total(vllm.GENERATED), total(vllm.DRAFTS), total(vllm.DRAFT_TOKENS), total(vllm.ACCEPTED))
