"""Live state of the instances: health and requests in flight. What the configuration says stays in the topology."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from proxy.load import Load
from proxy.topology import Instance, Role, Topology


@dataclass(slots=True)
class Member:
    """One instance as it is now."""

    instance: Instance
    healthy: bool = False
    """Written by the health monitor only."""
    reason: str = "not probed yet"
    """Why it is not healthy; empty when it is."""
    in_flight: int = 0
    last_turn: int = 0
    """The number of the last request that it was given, counted over the pool; 0 for none."""
    load: Load = field(default_factory=Load)


class Pool:
    """All instances of a topology."""

    def __init__(self, topology: Topology) -> None:
        self.members = tuple(Member(instance) for instance in topology.instances)
        self._turns = 0

    def healthy(self, *roles: Role) -> list[Member]:
        """The healthy members of some roles, in the order of the topology."""
        return [member for member in self.members if member.healthy and member.instance.role in roles]

    @contextmanager
    def using(self, member: Member) -> Iterator[None]:
        """Counts one request in flight."""
        self._turns += 1
        member.last_turn = self._turns
        member.in_flight += 1
        try:
            yield
        finally:
            member.in_flight -= 1
