"""Decision: what engines told lately."""

import time

from proxy.health.readings import Readings
from proxy.overview.sample import Engine
from proxy.pool import Member, Pool


def fresh(member: Member, patience: float) -> Readings | None:
    """What an instance told at its last look, unless that was more seconds ago."""
    engine = _told(member, patience)
    return None if engine is None else engine.readings


def engines(pool: Pool, patience: float) -> dict[str, Engine]:
    """All that told something lately."""
    found = {member.instance.name: _told(member, patience) for member in pool.members}
    return {name: engine for name, engine in found.items() if engine is not None}


def _told(member: Member, patience: float) -> Engine | None:
    at = member.told_at
    if at is None or member.readings is None or time.monotonic() - at > patience:
        return None
    return Engine(member.instance.role, member.readings, at)
