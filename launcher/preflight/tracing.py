"""Are the packages there by which the proxy sends spans?"""

import shlex
from collections.abc import Iterator
from importlib.util import find_spec

from launcher.inventory import Inventory
from launcher.plan import Plan

_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def findings(plan: Plan, inventory: Inventory) -> Iterator[str]:
    """What is missing, without importing it."""
    if plan.proxy.tracing and not all(map(_is_there, _NEEDED)):
        python = shlex.quote(inventory.python)
        yield (
            "proxy.tracing needs OpenTelemetry, which is not installed; take the key away, or install it: in Duet's "
            f"checkout, {python} -m pip install '.[tracing]'"
        )


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False
