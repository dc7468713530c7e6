"""Looks whether the packages are there that compute and draw what was measured."""

from importlib.util import find_spec

from launcher.errors import MeasureError

_NEEDED = ("jinja2", "matplotlib", "numpy", "scipy")
"""Of the extra ``measure``."""


def missing() -> list[str]:
    """Those that are not there."""
    return [name for name in _NEEDED if find_spec(name) is None]


def needed() -> None:
    """Raises :class:`MeasureError` when some are missing."""
    if names := missing():
        raise MeasureError(
            f"to measure, {', '.join(names)} must be installed: pip install 'duet-serve[measure]', which the extras "
            "cpu and gpu bring along"
        )
