"""What the advisor said is written where the proxy tells people of the deployment."""

import json
import os
import time
from collections.abc import Sequence
from typing import Any

from launcher.advice.advice import Advice, Judgement
from launcher.advice.rule import Verdict
from launcher.advice.techniques import ABOUT
from launcher.local.run_directory import RunDirectory

WITHDRAW = "withdraw"
"""In place of a no, of a technique that is in use."""


def note(directory: RunDirectory, advice: Advice, window: float) -> None:
    """In place of what it said before. ``window``: seconds that it watched. Raises :class:`OSError`."""
    file = directory.about
    document = _read(directory)
    document["advice"] = {
        "at": time.time(),
        "window_seconds": window,
        "verdict": advice.verdict,
        "advice": [_judgement(each, advice.withdraw) for each in advice.judgements],
    }
    new = file.with_suffix(".new")
    new.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    os.replace(new, file)


def _read(directory: RunDirectory) -> dict[str, Any]:
    try:
        document = json.loads(directory.about.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _judgement(judgement: Judgement, withdrawn: Sequence[Judgement]) -> dict[str, object]:
    missing = sorted({name for each in judgement.undecided for name in each.missing})
    lacks = f"Not known: {', '.join(missing)}." if judgement.verdict is Verdict.CANNOT_SAY and missing else ""
    return {
        "technique": judgement.technique,
        "title": ABOUT[judgement.technique].title,
        "in_use": judgement.in_use,
        "verdict": WITHDRAW if judgement in withdrawn else judgement.verdict,
        "reason": next((reason.text for reason in judgement.reasons), lacks),
    }
