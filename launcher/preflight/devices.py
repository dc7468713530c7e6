"""Does the machine have the devices that the plan uses?"""

from collections.abc import Iterator

from launcher.preflight.finding import Case, Fault, Layer, Rule


def _missing(case: Case) -> Iterator[Fault]:
    """GPUs that are planned but not there."""
    wanted = {device for engine in case.plan.engines for device in engine.devices}
    known = {name for gpu in case.inventory.gpus for name in (gpu.uuid, str(gpu.index))}
    if wanted - known:
        yield Fault(
            "device",
            f"the plan needs {len(wanted)} GPU(s) and this machine shows {len(case.inventory.gpus)}",
            "run it where they are, lower roles.*.replicas or tensor_parallel, or try the profile demo",
        )


RULES = (Rule("devices/there", Layer.HOST, "NVIDIA's driver", _missing),)
