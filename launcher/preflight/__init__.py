"""Would this profile run, and do what it says? One topic per file; all findings come at once, before any start."""

from collections.abc import Collection, Iterator
from dataclasses import replace

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
    pools,
    ports,
    proxy_files,
    quantization,
    thresholds,
    tracing,
)
from launcher.preflight.finding import Case, Finding, Layer, Rule, Severity, finding, key_in_pool

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
    *pools.RULES,
)


def judge(case: Case, layers: Collection[Layer] = frozenset(Layer), *, with_model: bool = True) -> Iterator[Finding]:
    """What the rules of these layers find, without those that read the model's files if it is not there yet."""
    told = set()
    pools = case.once(Case.by_pool)
    for rule in RULES:
        if rule.layer not in layers or (rule.needs_model and not with_model):
            continue
        for pool, each in ({"": case} if rule.of_all_pools else pools).items():
            for fault in rule.judge(each):
                if fault.message not in told:  # a setting of all roles, or of all pools, is at fault in each of them
                    told.add(fault.message)
                    yield finding(rule, replace(fault, key=key_in_pool(pool, fault.key)), case.document)


def refuse(findings: Collection[Finding]) -> None:
    """Raises :class:`PreflightError` with all that keeps the deployment from starting, if anything does."""
    errors = [each.fault.message for each in findings if each.fault.severity is Severity.ERROR]
    if errors:
        raise PreflightError(errors)
