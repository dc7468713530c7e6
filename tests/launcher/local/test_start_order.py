"""Engines that share a device start one after another, others at the same time."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from launcher.local.deployment import State
from launcher.local.run_directory import RunDirectory
from launcher.local.start_order import Ahead, ahead_of
from launcher.local.turns import Turns
from tests.launcher.local.supervised import planned, supervised

DEVICES = {"a": {"0"}, "b": {"0"}, "c": {"1"}, "d": {"0", "1"}, "cpu": set()}
NOTHING_FREE = "ERROR torch.OutOfMemoryError: CUDA out of memory\n"


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("a", "a b c d", []),
        ("b", "a b c d", [Ahead("a", "0")]),
        ("c", "a b c d", []),
        ("d", "a b c d", [Ahead("a", "0"), Ahead("b", "0"), Ahead("c", "1")]),
        ("a", "d b a", [Ahead("d", "0"), Ahead("b", "0")]),
        ("cpu", "a cpu", []),
        ("a", "cpu a", []),
        ("stranger", "a stranger", []),
    ],
)
def test_those_before_it_on_its_devices_are_ahead(name: str, line: str, expected: list[Ahead]):
    assert [*ahead_of(name, line.split(), DEVICES)] == expected


def test_whom_one_waits_for_is_said_with_the_device():
    assert str(Ahead("decode-0", "GPU-1")) == "decode-0 on GPU-1"


async def test_turns_go_in_the_order_of_asking_and_say_whom_one_waits_for():
    turns, told, order = Turns(DEVICES), [], []
    may_end = {name: asyncio.Event() for name in "abd"}

    async def start(name: str) -> None:
        async with turns.turn(name, lambda ahead: told.append(f"{name}: {ahead}")):
            order.append(name)
            await may_end[name].wait()

    async with asyncio.TaskGroup() as group:
        for name in "abd":
            group.create_task(start(name))
        await asyncio.sleep(0)
        assert (order, told) == (["a"], ["b: a on 0", "d: b on 0"])
        for name in "abd":
            may_end[name].set()
    assert order == ["a", "b", "d"]


async def test_one_that_gives_up_waiting_lets_those_behind_it_go():
    turns = Turns(DEVICES)

    async def start(name: str) -> None:
        async with turns.turn(name, lambda ahead: None):
            pass

    async with turns.turn("a", lambda ahead: None):
        behind = [asyncio.create_task(start(name)) for name in "bd"]
        await asyncio.sleep(0)
        behind[0].cancel()
    await behind[1]
    assert behind[0].cancelled()


def test_unrest_is_what_neighbours_do():
    turns = Turns(DEVICES)
    for name in ("a", "c", "cpu", "d"):
        turns.came_or_went(name)
    assert [turns.unrest(name) for name in ("a", "b", "c", "d", "cpu")] == [1, 2, 1, 2, 0]


@pytest.fixture
def directory(folder: Path) -> RunDirectory:
    return RunDirectory(folder / "run")


async def test_the_second_on_a_device_starts_when_the_first_is_ready(
    profile: Path, directory: RunDirectory, folder: Path
):
    plan = planned(
        profile,
        directory,
        {"prefill-0": "GPU-0", "decode-0": "GPU-0 GPU-1", "decode-1": "GPU-2"},
        "roles.decode.replicas=2",
    )
    async with supervised(plan, directory) as reports:
        await reports.until_state("prefill-0", State.STARTING)
        await reports.until_state("decode-1", State.STARTING)
        waiting = reports.instance("decode-0")
        assert (waiting.state, waiting.waits_for, waiting.pid) == (State.WAITING, "prefill-0 on GPU-0", None)
        (folder / "prefill-0").touch()
        await reports.until_state("prefill-0", State.READY)
        began = await reports.until_state("decode-0", State.STARTING, waits_for=None)
        assert began.started_at >= reports.instance("prefill-0").started_at
        assert began.start_budget == plan.startup_timeout


async def test_one_that_starts_again_waits_for_a_neighbour_that_is_just_starting(
    profile: Path, directory: RunDirectory, folder: Path
):
    plan = planned(profile, directory, {"prefill-0": "GPU-0", "decode-0": "GPU-0"})
    async with supervised(plan, directory) as reports:
        (folder / "prefill-0").touch()
        first = await reports.until_state("prefill-0", State.READY)
        await reports.until_state("decode-0", State.STARTING)
        os.kill(first.pid, signal.SIGKILL)
        await reports.until_state("prefill-0", State.RESTARTING, waits_for="decode-0 on GPU-0")
        (folder / "decode-0").touch()
        await reports.until_state("decode-0", State.READY)
        assert (await reports.until_state("prefill-0", State.READY)).restarts == 1


async def test_a_start_without_enough_memory_is_tried_once_more_when_a_neighbour_ended_meanwhile(
    profile: Path, directory: RunDirectory, folder: Path
):
    plan = planned(profile, directory, {"prefill-0": "GPU-0", "decode-0": "GPU-0"})
    async with supervised(plan, directory) as reports:
        (folder / "prefill-0").touch()
        neighbour = await reports.until_state("prefill-0", State.READY)
        first = await reports.until_state("decode-0", State.STARTING)
        os.kill(neighbour.pid, signal.SIGKILL)
        await reports.until_state("prefill-0", State.RESTARTING)
        write(folder / "decode-0", NOTHING_FREE)
        await reports.until(lambda: reports.instance("decode-0").pid != first.pid)
        assert reports.instance("decode-0").restarts == 0
        assert "tried once more, since a neighbour" in reports.instance("decode-0").reason
        (folder / "decode-0").touch()
        await reports.until_state("decode-0", State.READY)


async def test_it_is_not_tried_again_when_nobody_else_came_or_went(
    profile: Path, directory: RunDirectory, folder: Path
):
    plan = planned(profile, directory, {"prefill-0": "GPU-0", "decode-0": "GPU-1"})
    async with supervised(plan, directory) as reports:
        await reports.until_state("prefill-0", State.STARTING)
        await reports.until_state("decode-0", State.STARTING)
        write(folder / "decode-0", NOTHING_FREE)
        await reports.until_state("decode-0", State.STOPPED)
        await reports.until_state("prefill-0", State.STOPPED)
    started = {each.pid for report in reports.deployments for each in report.instances if each.name == "decode-0"}
    assert len(started - {None}) == 1


def write(gate: Path, text: str) -> None:
    """All of it at once."""
    new = gate.with_name(f"{gate.name}.new")
    new.write_text(text)
    new.rename(gate)
