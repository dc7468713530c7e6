"""Decision: what was seen -> what is wrong."""

from launcher.doctor.problem import Finding
from launcher.doctor.problems import CHECKS
from launcher.doctor.sight import Sight


def examine(sight: Sight) -> tuple[Finding, ...]:
    """All problems that there are, in the order of the checks: first those that make others happen."""
    found = (Finding(check.problem, tuple(check.find(sight))) for check in CHECKS)
    return tuple(finding for finding in found if finding.evidence)
