"""Shape: how the machines of a plan reach each other."""

from dataclasses import dataclass
from pathlib import Path

from launcher.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Site:
    """Where a plan runs."""

    listen: str
    """The address on which engines listen."""
    reach: str
    """The address by which their partners reach them."""
    one_machine: bool
    """Whether all instances share its devices and ports. Else the plan has one engine of each role, as the pattern of
    its replicas, and the proxy finds them itself."""


LOCAL = Site("127.0.0.1", "127.0.0.1", one_machine=True)
"""Engines have no authentication: only the proxy is reachable from outside."""
CLUSTER = Site("0.0.0.0", "$(POD_IP)", one_machine=False)
"""Kubernetes puts the variable's value into arguments and variables."""

POD = Inventory(
    cores=4,
    memory_total=0,
    memory_available=0,
    python="python3",
    cache=Path("/cache/duet"),
)
"""What is known of the machine on which a pod will run; ``cores`` where the profile does not say how many it has."""
POD_FOLDER = Path("/etc/duet")
"""Where the proxy's files are in its pod."""
