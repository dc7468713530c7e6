"""Shape: how progress is told."""

from collections.abc import Callable

Tell = Callable[[str, int, int], None]
"""What is done, how much of it, of how much; 0 of 0 where there is nothing to count."""


def quiet(_title: str, _done: int, _of: int) -> None:
    """For who does not want to know."""
