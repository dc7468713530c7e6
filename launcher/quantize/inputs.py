"""Looks whether what a quantization needs is there at all: files that the user names, packages."""

import stat
from importlib.util import find_spec
from pathlib import Path

from launcher.errors import QuantizeError

_PACKAGES = ("jinja2", "matplotlib", "numpy", "scipy")
"""Of the extra ``measure``."""


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
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise QuantizeError(
            f"to judge a model, {', '.join(missing)} must be installed: pip install 'duet-serve[measure]', which the "
            "extras cpu and gpu bring along"
        )
