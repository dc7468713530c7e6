"""An engine is started again when its devices have given back what it had."""

import os
import signal
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

from launcher.inventory import DeviceUse
from launcher.local.deployment import State
from launcher.local.device_memory import DeviceMemory
from launcher.local.given_back import STILL, left_by, rising
from launcher.local.run_directory import RunDirectory
from tests.launcher.local.supervised import planned, supervised

GIB = 2**30
FULL, HALF, FREE = DeviceUse(0, frozenset({7, 8})), DeviceUse(40 * GIB, frozenset({8})), DeviceUse(80 * GIB)


def test_what_an_engine_left_is_named_by_device_and_pid():
    uses = {"GPU-0": DeviceUse(0, frozenset({7, 8, 9})), "GPU-1": DeviceUse(0, frozenset({9}))}
    assert left_by({8, 7, 1}, uses) == {"GPU-0": [7, 8]}
    assert left_by({1}, uses) == {}


@pytest.mark.parametrize(("more", "rises"), [(0, False), (STILL - 1, False), (STILL, True), (-GIB, False)])
def test_memory_that_still_becomes_free_is_noticed(more: int, rises: bool):
    assert rising({"GPU-0": DeviceUse(GIB)}, {"GPU-0": DeviceUse(GIB + more), "GPU-1": FREE}) == ["GPU-0"] * rises


class Driver:
    """Tells one reading after another, the last one for ever."""

    def __init__(self, *readings: DeviceUse | None) -> None:
        self._readings: Iterator[DeviceUse | None] = iter(readings)
        self.looks: list[Collection[str]] = []

    def __call__(self, devices: Collection[str]) -> Mapping[str, DeviceUse]:
        self.looks.append(devices)
        self._now = next(self._readings, getattr(self, "_now", None))
        return {} if self._now is None else dict.fromkeys(devices, self._now)


@pytest.mark.parametrize(
    ("readings", "looks"),
    [
        ((FREE,), 2),
        ((FULL, FULL, HALF, FREE), 5),  # the pid goes, then memory comes, then that stands still
        ((DeviceUse(0), DeviceUse(GIB), DeviceUse(2 * GIB)), 4),  # a driver that names nobody
        ((None,), 1),
    ],
)
async def test_it_waits_until_nobody_of_it_is_there_and_free_memory_stands_still(readings, looks: int):
    driver, warnings = Driver(*readings), []
    await DeviceMemory(driver, warnings.append, pause=0).given_back("decode-0", ["GPU-0"], {7})
    assert (len(driver.looks), warnings) == (looks, [])


async def test_without_devices_nothing_is_asked():
    driver = Driver(FULL)
    await DeviceMemory(driver, lambda text: None, pause=0).given_back("decode-0", [], {7})
    assert driver.looks == []


async def test_what_stays_is_named_and_the_start_goes_on():
    warnings: list[str] = []
    await DeviceMemory(Driver(FULL), warnings.append, pause=0, looks=3).given_back("decode-0", ["GPU-0"], {7, 8, 9})
    assert warnings == [
        "decode-0 is started although processes of its last run still hold memory (pid 7, 8 on GPU-0; if they stay, "
        "end them with kill -9) after 0 s"
    ]


async def test_memory_that_never_stands_still_is_told():
    warnings: list[str] = []
    driver = Driver(*(DeviceUse(number * GIB) for number in range(9)))
    await DeviceMemory(driver, warnings.append, pause=0, looks=3).given_back("decode-0", ["GPU-0"], set())
    assert warnings == ["decode-0 is started although memory is still being freed on its devices after 0 s"]


async def test_an_engine_that_ended_is_started_again_when_its_processes_have_left_the_device(
    profile: Path, folder: Path
):
    directory = RunDirectory(folder / "run")
    plan = planned(profile, directory, {"prefill-0": "GPU-0", "decode-0": "GPU-1"})
    for name in ("prefill-0", "decode-0"):
        (folder / name).touch()
    listed: list[frozenset[int]] = []

    def look(devices: Collection[str]) -> Mapping[str, DeviceUse]:
        assert [*devices] == ["GPU-1"]
        listed.append(frozenset({engine.pid}) if len(listed) < 2 else frozenset())
        return {"GPU-1": DeviceUse(GIB, listed[-1])}

    async with supervised(plan, directory, look) as reports:
        engine = await reports.until_state("decode-0", State.READY)
        await reports.until_state("proxy", State.READY)
        assert listed == []
        os.kill(engine.pid, signal.SIGKILL)
        again = await reports.until_state("decode-0", State.STARTING)
        assert again.pid != engine.pid
        assert listed == [{engine.pid}, {engine.pid}, set()]
