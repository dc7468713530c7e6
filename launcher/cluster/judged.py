"""A profile's values for the chart, and what preflight says of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher import preflight
from launcher.cluster.values import for_cluster, plan_for_cluster, values
from launcher.preflight.finding import Case, Finding, Layer
from launcher.profile import Profile
from launcher.site import POD


@dataclass(frozen=True, slots=True)
class Judged:
    """Nothing in it keeps it from being installed."""

    values: Mapping[str, object]
    findings: tuple[Finding, ...]
    """Warnings."""


def judged(profile: Profile, name: str, environ: Mapping[str, str]) -> Judged:
    """Ask the static layer, of the machines that will run it nothing; raises :class:`launcher.errors.PreflightError`.

    The model's files are judged where they are on this machine, too.
    """
    plan = plan_for_cluster(profile, name)
    profile = for_cluster(profile)
    # What this machine's cluster tells of its services is of no matter to another one's pods.
    case = Case(profile, plan, POD, {name: text for name, text in environ.items() if name != "VLLM_PORT"})
    is_here = profile.model.path is None or Path(plan.model).is_dir()
    findings = tuple(preflight.judge(case, {Layer.STATIC}, with_model=is_here))
    preflight.refuse(findings)
    return Judged(values(profile, name), findings)
