"""A look at the machine that runs the tests."""

import os
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest

from launcher import machine
from launcher.inventory import DeviceUse


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


class Driver:
    """Of one GPU, as far as :func:`launcher.machine.device_uses` asks it."""

    def __init__(self, *, lists_processes: bool) -> None:
        self._lists_processes = lists_processes
        self.is_open = False

    def nvmlInit(self) -> None:
        self.is_open = True

    def nvmlShutdown(self) -> None:
        self.is_open = False

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return self.nvmlDeviceGetHandleByUUID(f"GPU-{index}")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if not self.is_open or uuid != "GPU-0":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return uuid

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(total=100, free=40)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        if not self._lists_processes:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [SimpleNamespace(pid=7), SimpleNamespace(pid=8)]


@pytest.mark.parametrize(("lists_processes", "pids"), [(True, {7, 8}), (False, set())])
def test_what_is_taken_of_devices_is_asked_by_uuid_or_index(monkeypatch, lists_processes: bool, pids: set[int]):
    driver = Driver(lists_processes=lists_processes)
    for name in dir(driver):
        if name.startswith("nvml"):
            monkeypatch.setattr(machine.pynvml, name, getattr(driver, name))
    use = DeviceUse(40, frozenset(pids))
    assert machine.device_uses(["0", "GPU-0", "GPU-7"]) == {"0": use, "GPU-0": use}
    assert not driver.is_open


def test_without_a_driver_nothing_is_taken(monkeypatch):
    def fails() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(machine.pynvml, "nvmlInit", fails)
    assert machine.device_uses(["0"]) == {}
