"""Are the packages there by which the proxy sends spans?"""

import shlex
from collections.abc import Iterator
from importlib.util import find_spec

from launcher.preflight.finding import Case, Fault, Layer, Rule

_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def _missing(case: Case) -> Iterator[Fault]:
    """What is missing, without importing it."""
    if case.plan.proxy.tracing and not all(map(_is_there, _NEEDED)):
        python = shlex.quote(case.inventory.python)
        yield Fault(
            "proxy.tracing",
            "it needs OpenTelemetry, which is not installed",
            f"take the key away, or install it: in Duet's checkout, {python} -m pip install '.[tracing]'",
        )


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


RULES = (Rule("host/tracing-installed", Layer.HOST, "the packages of the launcher's own Python", _missing),)
