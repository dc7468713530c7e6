"""A look at the machine that runs the tests."""

import os
import socket
import sys
from pathlib import Path

from launcher import machine


def test_what_a_plan_needs_is_found():
    found = machine.look({})
    assert found.cores == len(os.sched_getaffinity(0))
    assert 0 < found.memory_available <= found.memory_total
    assert found.python == sys.executable
    assert found.cache.is_absolute()


def test_a_listening_socket_is_found_with_its_process():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        assert machine.look({}).listeners[listener.getsockname()[1]].pid == os.getpid()


def test_the_cache_can_be_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert machine.look({"DUET_CACHE": "models"}).cache == Path(tmp_path) / "models"
