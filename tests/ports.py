"""Ports for servers that are told their number, apart from those of tests that run at the same time."""

import itertools
import os
import socket
import zlib

_EACH = 100
"""Ports of one process that runs tests."""
_NUMBERS = itertools.cycle(range(80, _EACH))


def first_ports() -> tuple[int, int]:
    """The first of thirty for engines and the first of thirty for their side channels.

    Ten processes in each of eleven runs have their own, all below those that the system gives to connections.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    base = 20000 + (zlib.crc32(run.encode()) % 11 * 10 + int(worker) % 10) * _EACH
    return base, base + 40


def free_port() -> int:
    """Another of this process: no connection and no other test takes it before the server does."""
    base, _ = first_ports()
    for number in itertools.islice(_NUMBERS, _EACH - 80):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: those of before may linger
            try:
                probe.bind(("127.0.0.1", base + number))
            except OSError:
                continue
            return base + number
    raise AssertionError(f"no free port from {base + 80} to {base + _EACH - 1}")
