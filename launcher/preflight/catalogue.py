"""All that preflight knows, as a table: for people who ask what is judged, and why."""

from collections.abc import Iterator
from dataclasses import dataclass

from launcher.preflight import RULES, engine
from launcher.preflight.examine import POSSIBLE
from launcher.preflight.finding import Layer, Rule, Severity
from launcher.preflight.matrix import COMBINATIONS

_HEAD = """# What preflight knows

Made of the rules themselves by `launcher rules --output markdown`. `launcher check PROFILE` asks them; each finding
names its rule. Words in braces stand for values of the profile, the model or the machine. Rules know vLLM 0.32.
"""
_TITLES = {
    Layer.STATIC: "Static: the profile, and the files of its models",
    Layer.ENGINE: "Engine: vLLM's own code",
    Layer.MEMORY: "Memory",
    Layer.HOST: "Host: the machine it would run on",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule."""

    name: str
    layer: Layer
    finds: str
    """What is wrong when it fires."""
    severity: Severity | None
    """``None``: it depends on what it finds."""
    source: str


def entries() -> list[Entry]:
    """All rules, by layer."""
    combinations = {each.name: each for each in COMBINATIONS}
    found = []
    for rule in (POSSIBLE, *RULES, *engine.RULES):
        combination = combinations.get(rule.name)
        finds = combination.what if combination else _said(rule)
        severity = combination.severity if combination else None
        found.append(Entry(rule.name, rule.layer, finds, severity, rule.source))
    return sorted(found, key=lambda each: ([*Layer].index(each.layer), each.name))


def page() -> str:
    """Markdown, a table for each layer."""
    return "".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    for layer in Layer:
        yield f"\n## {_TITLES[layer]}\n\n| rule | finds | source |\n| --- | --- | --- |\n"
        for each in entries():
            if each.layer is layer:
                warns = " (warning)" if each.severity is Severity.WARNING else ""
                yield f"| `{each.name}`{warns} | {_cell(each.finds)} | {_cell(each.source)} |\n"


def _said(rule: Rule) -> str:
    return (rule.judge.__doc__ or "").strip().partition("\n")[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
