"""Does the machine have the devices that the plan uses?"""

from collections.abc import Iterator

from launcher.inventory import Inventory
from launcher.plan import Plan


def findings(plan: Plan, inventory: Inventory) -> Iterator[str]:
    """GPUs that are planned but not there."""
    wanted = {gpu for engine in plan.engines for gpu in engine.gpus}
    missing = wanted - {gpu.index for gpu in inventory.gpus}
    if missing:
        yield (
            f"the plan needs {len(wanted)} GPU(s) and this machine shows {len(inventory.gpus)}: "
            "run it where they are, lower roles.*.replicas or tensor_parallel, or try the profile demo"
        )
