"""Metrics of a check, as a file for Prometheus' node exporter (its textfile collector)."""

from collections.abc import Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from launcher.quantize.drift import Drift, Level
from launcher.quantize.gate.shape import Judgement

METRICS = {
    "duet_quantization_drift_ratio": "Divergence of live prompts from the calibration, by what chance explains.",
    "duet_quantization_length_psi": "Population stability index of the lengths of live prompts.",
    "duet_quantization_live_records": "Live records that were compared.",
    "duet_quantization_checked_timestamp_seconds": "When that was.",
    "duet_quantization_kl": "Nats by which the next token of live records differs from the original model's.",
}
"""Gauges, each with the label ``model``: the checkpoint's folder."""


def samples(found: Drift, judgement: Judgement | None, now: float) -> Mapping[str, float]:
    """By name; of too few live records there is neither ratio nor index, and of models not served no divergence."""
    told = {
        "duet_quantization_live_records": float(found.live_records),
        "duet_quantization_checked_timestamp_seconds": now,
    }
    if found.level is not Level.UNKNOWN:
        told |= {
            "duet_quantization_drift_ratio": found.ratio,
            "duet_quantization_length_psi": found.length_psi,
        }
    kl = [each.figure.value for each in judgement.checks if each.name == "token KL"] if judgement else []
    return {**told, "duet_quantization_kl": kl[0]} if kl else told


def write(file: Path, told: Mapping[str, float], model: str) -> None:
    """In place of what was there, at once; raises :class:`OSError`."""
    registry = CollectorRegistry()
    for name, value in told.items():
        Gauge(name, METRICS[name], ["model"], registry=registry).labels(model).set(value)
    write_to_textfile(str(file), registry)
