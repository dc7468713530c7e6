"""Decision: what engines told lately."""

import time

from proxy.health.readings import Readings
from proxy.overview.sample import Engine
from proxy.pool import Member, Pool


def fresh(member: Member, patience: float) -> Readings | None:
    """What an instance told at its last look, unless that was more seconds ago."""
    told_at = member.told_at
    return member.readings if told_at is not None and time.monotonic() - told_at <= patience else None


def engines(pool: Pool, patience: float) -> dict[str, Engine]:
    """All that told something lately."""
    found = {member.instance.name: (member.instance.role, fresh(member, patience)) for member in pool.members}
    return {name: Engine(role, readings) for name, (role, readings) in found.items() if readings is not None}
