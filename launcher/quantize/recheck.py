"""What ``quantize check`` needs of others: a worker that counts, and engines that answer."""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from launcher import loader
from launcher.errors import QuantizeError
from launcher.inventory import Inventory
from launcher.quantize.gate.judge import judge
from launcher.quantize.gate.records import records_of
from launcher.quantize.gate.shape import Judgement, Limits
from launcher.quantize.manifest import FOLDER
from launcher.quantize.original import path_of
from launcher.quantize.sides import SPARE, Sides, scores_of, serving
from launcher.quantize.worker_process import Listener, Worker


def counting(
    python: Path, environ: Mapping[str, str], listener: Listener
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Runs one job in a folder that is gone afterwards, since its result has the user's records."""

    def count(job: Mapping[str, Any]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="duet-quantize-") as folder:
            return Worker(python, Path(folder), environ, listener).run("count", job)

    return count


def judging(
    folder: Path, profile: str | None, inventory: Inventory, environ: Mapping[str, str], listener: Listener
) -> Callable[[Sequence[Mapping[str, Any]]], Judgement]:
    """Serves the original and the checkpoint, one after the other, and compares them.

    Raises :class:`QuantizeError` when the original is not there any more.
    """
    loaded = None if profile is None else loader.load(profile)
    original = path_of(_model(folder), inventory.cache, environ, listener.note)

    def compare(held_out: Sequence[Mapping[str, Any]]) -> Judgement:
        records = records_of(held_out)
        longest = max((len(record.ids) for record in records), default=0) + SPARE
        sides = Sides(serving(loaded, bool(inventory.gpus), longest), records, None, environ, listener)
        with tempfile.TemporaryDirectory(prefix="duet-quantize-") as logs:
            before = sides.ask(original, "original", Path(logs) / "original.log", twice=True, timed=False)
            after = sides.ask(folder, "quantized", Path(logs) / "quantized.log", twice=False, timed=False)
        return judge(scores_of(before), scores_of(before, "again"), scores_of(after), Limits())

    return compare


def _model(folder: Path) -> str:
    file = folder / FOLDER / "manifest.json"
    try:
        return str(json.loads(file.read_text())["model"])
    except OSError as exc:
        raise QuantizeError(f"{file}: cannot be read ({exc.strerror}): give a folder that was published") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise QuantizeError(f"{file}: is damaged ({exc!r}): quantize again") from exc
