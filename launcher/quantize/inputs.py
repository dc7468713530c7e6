"""Looks whether what a quantization needs is there at all: files that the user names, packages."""

import stat
from pathlib import Path

from launcher.errors import QuantizeError
from launcher.measure.packages import missing


def readable(file: Path, option: str) -> None:
    """Raises :class:`QuantizeError` for what is no file; one that can be read once only will not do."""
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "no regular file, and it is read more than once"
            raise QuantizeError(f"{option} {file} is {kind}: name a file of JSON lines")
        with file.open("rb"):
            pass
    except OSError as exc:
        raise QuantizeError(f"{option} {file} cannot be read ({exc.strerror}): name a file of JSON lines") from exc


def packages() -> None:
    """Raises :class:`QuantizeError` without those that compute and draw what was measured."""
    if names := missing():
        raise QuantizeError(
            f"to judge a model, {', '.join(names)} must be installed: pip install 'duet-serve[measure]', which the "
            "extras cpu and gpu bring along"
        )
