"""Would this profile run, and do what it says? One topic per file; all findings come at once, before any start."""

from collections.abc import Collection, Iterator

from launcher.errors import PreflightError
from launcher.preflight import (
    agreement,
    checkpoints,
    devices,
    engine_installed,
    environment,
    host,
    matrix,
    memory,
    model_files,
    ports,
    proxy_files,
    quantization,
    thresholds,
    tracing,
)
from launcher.preflight.finding import Case, Finding, Layer, Rule, Severity, finding

RULES: tuple[Rule, ...] = (
    *agreement.RULES,
    *matrix.RULES,
    *model_files.RULES,
    *quantization.RULES,
    *checkpoints.RULES,
    *thresholds.RULES,
    *memory.RULES,
    *devices.RULES,
    *environment.RULES,
    *ports.RULES,
    *engine_installed.RULES,
    *host.RULES,
    *tracing.RULES,
    *proxy_files.RULES,
)


def judge(case: Case, layers: Collection[Layer] = frozenset(Layer), *, with_model: bool = True) -> Iterator[Finding]:
    """What the rules of these layers find, without those that read the model's files if it is not there yet."""
    told = set()
    for rule in RULES:
        if rule.layer in layers and (with_model or not rule.needs_model):
            for fault in rule.judge(case):
                if fault.message not in told:  # a setting of all roles is at fault in each of them
                    told.add(fault.message)
                    yield finding(rule, fault, case.document)


def refuse(findings: Collection[Finding]) -> None:
    """Raises :class:`PreflightError` with all that keeps the deployment from starting, if anything does."""
    errors = [each.fault.message for each in findings if each.fault.severity is Severity.ERROR]
    if errors:
        raise PreflightError(errors)
