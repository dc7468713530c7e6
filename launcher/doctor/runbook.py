"""Decision: ``docs/runbook.md``, made of the problems themselves."""

from collections.abc import Iterator

from launcher.doctor.problems import CHECKS

_HEAD = """# Runbook

What can be wrong with a running deployment, how to see it, and what to do. Made of the problems that `launcher doctor`
knows, by `launcher doctor --runbook`; run `launcher doctor` first: it looks at all of this and shows the evidence.
Alerts of [the alert pack](monitoring.md) link here. Thresholds are those of the profile, under `proxy.alerts`.
"""


def page() -> str:
    """Markdown, a heading for each problem."""
    return "".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    for check in CHECKS:
        each = check.problem
        yield f"\n## {each.id}\n\n**{each.symptom}** ({each.severity}"
        yield f"; alert `{each.alert}`)\n\n" if each.alert else ")\n\n"
        for title, text in (("Cause", each.cause), ("Look at", each.look_at), ("Fix", each.fix)):
            yield f"- {title}: {text}\n"
