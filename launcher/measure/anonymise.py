"""Makes records anonymous: those of a file, or of a workload before it is sent."""

import json
from dataclasses import replace
from pathlib import Path
from random import SystemRandom

from launcher.errors import MeasureError
from launcher.measure.anonymous import anonymous
from launcher.measure.records import requests_of
from launcher.measure.workload_file import Work, recorded


def anonymise(source: Path, target: Path, max_tokens: int) -> int:
    """How many requests were written, in the order of their times.

    Raises :class:`MeasureError` when they cannot be read, made anonymous or written; then nothing is.
    """
    made = [*anonymous(recorded(source, max_tokens), SystemRandom())]
    try:
        with target.open("x", encoding="utf-8") as out:
            out.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in made)
    except FileExistsError as exc:
        raise MeasureError(f"{target} exists already: name another file") from exc
    except OSError as exc:
        raise MeasureError(f"cannot write {target}: {exc.strerror}") from exc
    return len(made)


def without_words(work: Work) -> Work:
    """The same workload of made-up words; one that is made up already stays. Raises :class:`MeasureError`."""
    if not work.recorded:
        return work
    lines = map(json.dumps, anonymous(work.recorded, SystemRandom()))
    return replace(work, recorded=requests_of(lines, work.name, work.workload.max_tokens))
