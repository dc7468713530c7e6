"""Shapes: what can be wrong with a deployment, and that it is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from launcher.doctor.sight import Sight


class Severity(StrEnum):
    """How bad it is."""

    CRITICAL = "critical"
    """Requests fail, or answers may be wrong."""
    WARNING = "warning"
    """Something is not as it should be, or soon will not work; requests are served."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One entry of the runbook."""

    id: str
    """Words with hyphens; the heading in ``docs/runbook.md``."""
    severity: Severity
    symptom: str
    """What somebody notices."""
    cause: str
    """Why that happens, the commonest first."""
    look_at: str
    """Where to see it without this program."""
    fix: str
    alert: str | None = None
    """Of ``helm/files/alerts.yaml``."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where it was seen, and what."""

    where: str
    """An instance, a pair as ``prefill-0 to decode-0``, ``proxy`` or ``host``."""
    text: str


@dataclass(frozen=True, slots=True)
class Check:
    """Finds one problem."""

    problem: Problem
    find: Callable[[Sight], Iterator[Evidence]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that there is."""

    problem: Problem
    evidence: tuple[Evidence, ...]
