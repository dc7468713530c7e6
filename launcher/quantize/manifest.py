"""Decision: what a published checkpoint tells of where it comes from; none of it is text of a user."""

import json
from typing import Any

from launcher.quantize.outcome import Outcome

VERSION = 1
FOLDER = "duet"
"""In the checkpoint; there are the manifest, the report's figures (``report.json``) and what the prompts of the
calibration look like in numbers (``calibration.json``)."""


def to_json(outcome: Outcome) -> str:
    """Of the attempt that is published, the last; the same outcome gives the same text."""
    return json.dumps(document(outcome), indent=1, sort_keys=True) + "\n"


def document(outcome: Outcome) -> dict[str, Any]:
    """Origin, recipe, verdict and versions; how to make the same again."""
    made = outcome.attempts[-1]
    judgement = made.judgement
    checks = judgement.checks if judgement else ()
    return {
        "manifest": VERSION,
        "model": outcome.model,
        "scheme": outcome.scheme,
        "algorithm": made.algorithm,
        "recipe": dict(made.recipe),
        "kept_in_16_bits_or_finer": list(made.kept),
        "bytes": made.size,
        "bytes_in_16_bits": outcome.baseline_size,
        "target": outcome.target,
        "verdict": outcome.verdict.value,
        "published_although_it_did_not_pass": outcome.forced,
        "judged_on": outcome.device,
        "judged_by_a_labelled_task": bool(judgement and not judgement.is_proxy),
        "checks": {
            each.name: {
                "value": each.figure.value,
                "low": each.figure.low,
                "high": each.figure.high,
                "limit": each.limit,
                "unit": each.unit,
                "verdict": each.verdict.value,
            }
            for each in checks
        },
        "calibration": {
            name: value
            for name, value in outcome.calibration.items()
            if name in ("used", "held_out", "tokens", "max_tokens", "chat_template")
        },
        "digests": dict(outcome.digests),
        "versions": dict(outcome.versions),
        "seed": outcome.seed,
        "command": outcome.command,
        "started": outcome.started,
    }
