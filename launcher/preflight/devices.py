"""Does the machine have the devices that the plan uses?"""

from collections.abc import Iterator

from launcher.preflight.finding import Case, Fault, Layer, Rule


def _missing(case: Case) -> Iterator[Fault]:
    """GPUs that are planned but not there."""
    wanted = {gpu for engine in case.plan.engines for gpu in engine.gpus}
    missing = wanted - {gpu.index for gpu in case.inventory.gpus}
    if missing:
        yield Fault(
            "device",
            f"the plan needs {len(wanted)} GPU(s) and this machine shows {len(case.inventory.gpus)}",
            "run it where they are, lower roles.*.replicas or tensor_parallel, or try the profile demo",
        )


RULES = (Rule("devices/there", Layer.HOST, "NVIDIA's driver", _missing),)
