"""Looks whether a file that the user names can be read at all."""

import stat
from pathlib import Path

from launcher.errors import QuantizeError


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
