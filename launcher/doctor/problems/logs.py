"""What engines write when they fail."""

import re
from collections.abc import Callable, Iterator

from launcher.doctor.problem import Check, Evidence, Problem, Severity
from launcher.doctor.sight import Sight
from launcher.log_signatures import SIGNATURES, Signature

_LONGEST = 200


def _says(pattern: re.Pattern[str]) -> Callable[[Sight], Iterator[Evidence]]:
    def find(sight: Sight) -> Iterator[Evidence]:
        for name, text in sight.logs.items():
            lines = [line.strip() for line in text.splitlines() if pattern.search(line)]
            if lines:
                last = "".join(char if char.isprintable() else " " for char in lines[-1])
                many = f" ({len(lines)} such lines)" if len(lines) > 1 else ""
                yield Evidence(name, f"its log: {last[:_LONGEST]}{many}")

    return find


def _check(each: Signature) -> Check:
    look_at = "`launcher logs INSTANCE`"
    problem = Problem(each.id, Severity.CRITICAL, each.symptom, each.cause, look_at, each.fix)
    return Check(problem, _says(each.pattern))


CHECKS = tuple(map(_check, SIGNATURES))
