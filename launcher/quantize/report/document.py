"""Decision: an outcome as JSON."""

import json
import math
from dataclasses import asdict

from launcher.quantize.outcome import Outcome


def to_json(outcome: Outcome) -> str:
    """All of it; numbers that JSON does not have are ``null``."""
    return json.dumps(_plain(asdict(outcome)), indent=1) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
