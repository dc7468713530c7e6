"""Is the address that clients use free? The engines' ports were chosen among free ones."""

from collections.abc import Iterator

from launcher.inventory import Inventory
from launcher.plan import Plan


def findings(plan: Plan, inventory: Inventory) -> Iterator[str]:
    """The proxy's port, if somebody listens on it, and who."""
    if listener := inventory.listeners.get(plan.proxy.port):
        who = f"pid {listener.pid} ({listener.command})" if listener.pid else listener.command
        yield (
            f"port {plan.proxy.port} for the proxy is taken by {who}: "
            f"stop it, or choose another with --set proxy.port={plan.proxy.port + 1}"
        )
