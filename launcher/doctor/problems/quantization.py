"""Quantized engines that answer otherwise than they should."""

from collections.abc import Iterator

from launcher.doctor.problem import Check, Evidence, Problem, Severity
from launcher.doctor.sight import Sight
from launcher.quantize.drift import Level


def _drift(sight: Sight) -> Iterator[Evidence]:
    limit = sight.threshold("reference_agreement")
    found = sight.proxy.by("duet_reference_agreement", "engine") if sight.proxy else {}
    for (name,), share in found.items():
        if limit is not None and share < limit:
            text = f"{share:.0%} of the reference answers' tokens are answered likewise, wanted {limit:.0%}"
            scheme = sight.plan.checkpoint_scheme if sight.plan else None
            yield Evidence(name, f"{text}; its checkpoint is {scheme}" if scheme else text)


def _calibration(sight: Sight) -> Iterator[Evidence]:
    if sight.checked is not None and sight.checked.level >= Level.WARNING:
        yield Evidence(sight.plan.model if sight.plan else "model", sight.checked.reasons[0])


CHECKS = (
    Check(
        Problem(
            "quantization-drift",
            Severity.WARNING,
            "An engine answers fixed prompts otherwise than the baseline did.",
            "Calibration data that are not like production, a scheme that is too coarse for this model, other weights "
            "than "
            "were judged, or an 8-bit KV cache without scales.",
            "`duet_reference_agreement`; compare lengths and tokens of calibration data with those of production",
            "Calibrate anew with records of your own traffic, take a finer scheme (group size, 8 in place of 4 bits), "
            "or "
            "serve the 16-bit model until then.",
            "DuetQuantizationDrift",
        ),
        _drift,
    ),
    Check(
        Problem(
            "calibration-drift",
            Severity.WARNING,
            "Prompts are no longer like those that a quantized model was calibrated with.",
            "Other users, another application, another language or system prompt; longer prompts than before.",
            "`launcher quantize check DIR --live recent.jsonl` (docs/quantization.md); its metrics "
            "`duet_quantization_drift_ratio`, `duet_quantization_length_psi`",
            "Have it ask both models on live records (`--served`): if the answers are still as good, nothing is to be "
            "done. Else quantize again with recent records, and serve the 16-bit model until then.",
            "DuetCalibrationDrift",
        ),
        _calibration,
    ),
)
