"""Finds ports that nobody has."""

import os
import socket

from launcher.errors import MeasureError

_FIRST, _LAST = 20000, 32000
"""Below those that the system gives to connections."""
ROOM = 40
"""Ports in a row for the engines of one deployment."""


def free_ranges(count: int) -> tuple[int, ...]:
    """The first ports of so many ranges of :data:`ROOM` each; raises :class:`MeasureError` when there are none.

    Two processes begin to look at different places.
    """
    slots = (_LAST - _FIRST) // ROOM
    found: list[int] = []
    for step in range(slots):
        first = _FIRST + ((os.getpid() * 7 + step) % slots) * ROOM
        if all(_is_free(port) for port in range(first, first + ROOM)):
            found.append(first)
            if len(found) == count:
                return tuple(found)
    raise MeasureError(
        f"there are no {count} times {ROOM} free ports in a row from {_FIRST} to {_LAST}: stop what has them"
    )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: those of before may linger
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
