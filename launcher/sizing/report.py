"""Shape: all that `launcher size` tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter

from launcher.sizing.changes import Change, Option, Transfer
from launcher.sizing.deployment import DeploymentSize


@dataclass(frozen=True, slots=True)
class Report:
    """Sizes of a deployment, and what else could be."""

    deployment: DeploymentSize
    on_cards: Mapping[int, DeploymentSize]
    """Bytes of a device -> the same deployment on such devices; empty where the devices are known."""
    transfer: Transfer | None
    """Of one prompt from prefill to decode; ``None`` without prefill, or unknown."""
    changes: Mapping[str, tuple[Change, ...]]
    """Role -> its engine with other precisions."""


@dataclass(frozen=True, slots=True)
class OptionsReport:
    """What fits on devices that somebody named."""

    subject: str
    devices: int
    card: int
    """Bytes of each."""
    options: Mapping[str, tuple[Option, ...]]
    """Role -> what its engine could be; empty for a model that cannot be counted."""
    together: str
    """Whether all roles fit at once, where there are several; else empty."""
    reasons: tuple[str, ...]
    """Why there is none."""


def to_json(report: Report | OptionsReport) -> str:
    """As indented JSON; sizes are bytes."""
    return _report_type().dump_json(report, indent=2).decode()


@cache
def _report_type() -> TypeAdapter[Report | OptionsReport]:
    """Built when it is needed: most verbs do not, and start sooner."""
    return TypeAdapter[Report | OptionsReport](Report | OptionsReport)
