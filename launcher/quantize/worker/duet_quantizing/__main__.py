"""Reads the job, runs its step, writes its result whole or not at all."""

import importlib
import json
import sys
from pathlib import Path

from .telling import RefusedError, Tell

_STEPS = ("prepare", "count", "quantize", "sensitivity")
_REFUSED = 3


def main(job_file: str) -> int:
    """Exit code: 0 with a result, 3 for a refused input; a crash keeps Python's own."""
    tell = Tell()
    job = json.loads(Path(job_file).read_text())
    step = job["step"]
    if step not in _STEPS:
        tell.error(f"{job_file}: step {step!r} is none of {', '.join(_STEPS)}")
        return _REFUSED
    try:
        result = getattr(importlib.import_module(f".{step}", __package__), step)(job, tell)
    except RefusedError as exc:
        tell.error(str(exc))
        return _REFUSED
    target = Path(job["result"])
    new = target.with_name(f"{target.name}.new")
    new.write_text(json.dumps(result))
    new.replace(target)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
