"""Shape: what is kept of an experiment that was stopped."""

from dataclasses import dataclass

from launcher.measure.conditions import Conditions
from proxy.experiment.answer import ExperimentAnswer


@dataclass(frozen=True, slots=True)
class AbReport:
    """One experiment from its begin to its end."""

    begun: Conditions | None
    """By which command, when, with which versions, on which machine; ``None`` where that was not kept."""
    stopped: str
    """ISO 8601, in UTC."""
    shown: ExperimentAnswer
    """At the end; its split has the salt, by which the buckets were drawn."""
    version: int = 1
