"""What expressions of PromQL name, and what there is to name."""

import re
from collections.abc import Iterator

from launcher.quantize import exposition
from proxy import engine_instruments, instruments
from proxy.instrument import Instrument, Kind
from tests.alerts.rules import rules

SCRAPED = {"job", "namespace", "instance", "metrics_path"}
"""Labels that every sample has by its scrape, or may have."""
_OTHERS = {
    "up": set(),
    "ALERTS": {"alertname", "alertstate", "severity", "engine", "prefill", "decode"},
    **{name: {"model"} for name in exposition.METRICS},
    "DCGM_FI_DEV_GPU_UTIL": {"Hostname", "gpu"},
    "DCGM_FI_DEV_FB_USED": {"Hostname", "gpu"},
}
"""Of Prometheus itself, of NVIDIA's dcgm-exporter, and of checks by the node exporter."""
_METRIC = re.compile(r"\b(duet[_:][\w:]+|DCGM_\w+|ALERTS|up)\b(?:\{([^}]*)\})?")
_LIST = re.compile(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^)]*)\)")
_STRING = re.compile(r'"[^"]*"')


def _samples(instrument: Instrument) -> Iterator[tuple[str, set[str]]]:
    labels = set(instrument.labels)
    if instrument.kind is Kind.HISTOGRAM:
        yield f"{instrument.name}_bucket", labels | {"le"}
        yield f"{instrument.name}_sum", labels
        yield f"{instrument.name}_count", labels
    else:
        yield instrument.shown, labels


def known() -> dict[str, set[str]]:
    """Labels of each metric that a proxy shows, or that a rule records; those of the scrape besides."""
    engines = (*(told.shown for told in engine_instruments.TOLD), *engine_instruments.MADE)
    shown = dict(sample for each in (*instruments.ALL, *engines) for sample in _samples(each))
    labels = set().union(*shown.values())
    recorded = {rule["record"]: labels for rule in rules("record")}
    return shown | recorded | _OTHERS


def unknown(expr: str) -> set[str]:
    """Metrics and labels that it names and that there are not, as ``name`` or ``name{label}``."""
    there, wrong = known(), set()
    for name, selector in _METRIC.findall(expr):
        if name not in there:
            wrong.add(name)
            continue
        named = set(re.findall(r"(\w+)\s*[=!]~?", _STRING.sub("", selector)))
        wrong |= {f"{name}{{{label}}}" for label in named - there[name] - SCRAPED}
    labels = set().union(*there.values()) | SCRAPED
    for names in _LIST.findall(expr):
        wrong |= {f"({label})" for label in re.findall(r"\w+", names) if label not in labels}
    return wrong
