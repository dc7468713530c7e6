"""Would this plan run here? One question per file; all findings are reported before anything starts."""

from collections.abc import Callable, Iterable

from launcher.errors import PreflightError
from launcher.inventory import Inventory
from launcher.plan import Plan
from launcher.preflight import (
    agreement,
    devices,
    engine_installed,
    memory,
    model_files,
    ports,
    quantization,
    thresholds,
    tracing,
)
from launcher.profile import Profile

Question = Callable[[Plan, Inventory], Iterable[str]]

MACHINE: tuple[Question, ...] = (
    engine_installed.findings,
    devices.findings,
    ports.findings,
    agreement.findings,
    tracing.findings,
)
"""What can be asked before the model is there."""
MODEL: tuple[Question, ...] = (model_files.findings, quantization.findings, memory.findings)


def check(plan: Plan, inventory: Inventory, questions: Iterable[Question] = MACHINE + MODEL) -> None:
    """Ask the questions; raises :class:`PreflightError` with all findings."""
    found = [finding for question in questions for finding in question(plan, inventory)]
    if found:
        raise PreflightError(found)


def remarks(profile: Profile, plan: Plan) -> Iterable[str]:
    """What somebody should look at although it would run."""
    return thresholds.remarks(profile, plan)
