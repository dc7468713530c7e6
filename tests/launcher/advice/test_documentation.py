"""The tables in docs/advice.md are those of the rules.

After a change on purpose: ``DUET_UPDATE_GOLDEN=1 python -m pytest tests/launcher/advice/test_documentation.py``, and
read the difference.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from launcher.advice.condition import Condition
from launcher.advice.facts import FACTS
from launcher.advice.rule import Rule, Technique, Verdict
from launcher.advice.rules import RULES
from launcher.advice.signs import BOTTLENECKS, SIGNS
from launcher.advice.starts import CANDIDATES
from launcher.advice.techniques import ABOUT
from launcher.advice.thresholds import Threshold

PAGE = Path(__file__).parents[3] / "docs" / "advice.md"
MARK = "<!-- From here on: "


def test_the_tables_are_those_of_the_rules():
    page = PAGE.read_text()
    prose, mark, rest = page.partition(MARK)
    head = prose + mark + rest.partition("\n")[0] + "\n"
    made = head + "\n" + "\n".join(_tables()) + "\n"
    if os.environ.get("DUET_UPDATE_GOLDEN"):
        PAGE.write_text(made)
    assert made == PAGE.read_text()


def test_the_page_names_only_options_that_exist():
    named = set(re.findall(r"--[a-z][a-z-]*[a-z]", PAGE.read_text().partition(MARK)[0]))
    assert named <= {
        "--window", "--answer", "--ask", "--output", "--memory", "--no-memory", "--latency", "--throughput",
        "--no-throughput",
    }  # fmt: skip


def _tables() -> Iterator[str]:
    yield from ("## Signs of a bottleneck", "", "Of one bottleneck, the first that holds decides.", "")
    yield from _table(("bottleneck", "is", "sign", "when"), _signs())
    yield from ("", "## Rules", "")
    yield from _table(("rule", "about", "verdict", "when", "known from"), _rules())
    yield from ("", "## What techniques are said to gain, and cost", "")
    yield from _table(("technique", "stage", "in a profile", "expected", "costs"), _techniques())
    yield from ("", "## Where it starts from", "", "The first that fits.", "")
    yield from _table(("next", "when", "profile", "`--set`"), _starts())
    yield from ("", "## Facts", "")
    yield from _table(("name", "what", "value"), _facts())


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def _when(conditions: Iterable[Condition]) -> str:
    return (
        " and ".join(f"`{each.fact}` {each.text.removeprefix(each.fact + ' ')}" for each in conditions) or "otherwise"
    )


def _signs() -> Iterator[tuple[str, ...]]:
    for fact in BOTTLENECKS:
        for sign in SIGNS:
            if sign.fact == fact:
                yield f"`{fact}`", "there" if sign.there else "not there", f"`{sign.name}`", _when(sign.when)


def _rules() -> Iterator[tuple[str, ...]]:
    for verdict in Verdict:
        for rule in RULES:
            if rule.verdict is verdict:
                yield f"`{rule.name}`", _about(rule), f"**{verdict}**", _when(rule.when), _sources(rule)


def _about(rule: Rule) -> str:
    techniques = "all" if rule.techniques == tuple(Technique) else ", ".join(rule.techniques)
    return techniques + (", not in use" if rule.of_need else "")


def _sources(rule: Rule) -> str:
    """The rule's own, and those of its thresholds."""
    limits = (when.value.source for when in rule.when if isinstance(when.value, Threshold))
    sources = [rule.source, *(source for source in limits if source not in rule.source)]
    return "; ".join(dict.fromkeys(sources))


def _techniques() -> Iterator[tuple[str, ...]]:
    for technique in Technique:
        about = ABOUT[technique]
        expected = "<br>".join(f"{gain.text} ({gain.source})" for gain in about.gains)
        yield f"`{technique}`: {about.title}", about.stage.value, about.keys, expected, "<br>".join(about.costs)


def _starts() -> Iterator[tuple[str, ...]]:
    for each in CANDIDATES:
        overrides = "<br>".join(f"`{override}`" for override in each.start.overrides)
        yield ", ".join(each.techniques), _when(each.when), f"`{each.start.profile}`", overrides


def _facts() -> Iterator[tuple[str, ...]]:
    for kind in FACTS.values():
        yield (
            f"`{kind.name}`",
            kind.what,
            f"from {', '.join(kind.computed_from)}" if kind.computed_from else kind.allowed,
        )
