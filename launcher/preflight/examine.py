"""The story of preflight: plan, ask all rules of the layers wanted, and the engine itself."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import PlanError
from launcher.inventory import Inventory
from launcher.loader import Resolved
from launcher.preflight import engine, judge, memory
from launcher.preflight.finding import Case, Fault, Finding, Layer, Rule, Severity, finding
from launcher.settle import settle


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, and what was not looked at."""

    findings: tuple[Finding, ...]
    layers: tuple[Layer, ...]
    """Whose rules were asked."""
    not_judged: tuple[str, ...]
    """Reasons why something could not be judged here."""

    @property
    def has_errors(self) -> bool:
        """Whether the deployment would not start."""
        return any(each.fault.severity is Severity.ERROR for each in self.findings)


def examine(
    resolved: Resolved,
    inventory: Inventory,
    *,
    name: str,
    run_directory: Path,
    environ: Mapping[str, str],
    layers: Collection[Layer] = frozenset(Layer),
) -> Report:
    """Judge a profile on a machine; starts nothing but, for the engine's layer, vLLM's own parser."""
    try:
        plan, inventory = settle(resolved.profile, inventory, name=name, run_directory=run_directory, environ=environ)
    except PlanError as exc:
        return Report((_of_plan(exc, resolved),), (), ("nothing else, since there is no plan",))
    case = Case(resolved.profile, plan, inventory, environ, resolved.document)
    findings = [*judge(case, layers, with_model=case.model_is_there)]
    not_judged = [] if case.model_is_there else [f"the model's files: {plan.model} is made at the first start"]
    if case.model_is_there and Layer.MEMORY in layers:
        for pool, each in case.once(Case.by_pool).items():
            not_judged += [f"pool {pool}: {reason}" if pool else reason for reason in memory.not_judged(each)]
    if Layer.ENGINE in layers:
        found, reasons = of_engine(case)
        findings += found
        not_judged += reasons
    return Report(tuple(findings), tuple(layer for layer in Layer if layer in layers), tuple(not_judged))


def of_engine(case: Case) -> tuple[list[Finding], list[str]]:
    """What vLLM itself finds, and why it was not asked."""
    findings, reasons = [], []
    for answer in engine.judge(case, case.inventory.cache):
        match answer:
            case engine.NotAsked(reason):
                reasons.append(reason)
            case (rule, fault):
                findings.append(finding(rule, fault, case.document))
    return findings, reasons


def _of_plan(error: PlanError, resolved: Resolved) -> Finding:
    key, colon, rest = str(error).partition(": ")
    if not colon or " " in key:
        key, rest = "(whole file)", str(error)
    what, _, fix = rest.rpartition("; ") if "; " in rest else rest.rpartition(": ")
    fault = Fault(key, what or rest, fix if what else "change the profile")
    return finding(POSSIBLE, fault, resolved.document)


def _impossible(_: Case) -> tuple[Fault, ...]:
    """What no plan can be made of: too few ports, devices that do not add up, options that are not free."""
    return ()


POSSIBLE = Rule("plan/possible", Layer.STATIC, "planning itself", _impossible)
