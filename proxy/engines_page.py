"""``/metrics/engines``: what the engines told when they were looked at last."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from proxy.agreement import Fact
from proxy.engines_view import Look, families
from proxy.pool import Member, Pool


class EnginesPage:
    """What the engines of a pool told when they were looked at last, under names of ours.

    Every process looks at all engines, so whoever is asked answers for all.
    """

    def __init__(self, pool: Pool, patience: float) -> None:
        """``patience``: seconds after which what an engine told is not shown any more."""
        self._pool = pool
        self._patience = patience

    def text(self, accept: str) -> tuple[bytes, str]:
        """As a header ``Accept`` wants it, and the type of that."""
        now = time.monotonic()
        encode, kind = choose_encoder(accept)
        return encode(_Families(families([self._look(member, now) for member in self._pool.members]))), kind

    def _look(self, member: Member, now: float) -> Look:
        age = None if member.told_at is None else now - member.told_at
        facts, recently = member.observed, member.recently
        return Look(
            engine=member.instance.name,
            role=member.instance.role,
            text=member.told if age is not None and age <= self._patience else "",
            age=age,
            version=facts.get(Fact.VERSION, ""),
            model=facts.get(Fact.SERVED_NAMES, ""),
            acceptance=recently.acceptance,
            accepted_length=recently.accepted_length,
        )


@dataclass(frozen=True, slots=True)
class _Families(Collector):
    families: list[Metric]

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        yield from self.families
