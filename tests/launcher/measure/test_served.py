"""What is measured is there meanwhile, and gone afterwards."""

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from launcher.errors import MeasureError, ProfileError, RunDirectoryError
from launcher.local.run_directory import RunDirectory
from launcher.measure.driver import drive
from launcher.measure.load import Closed
from launcher.measure.served import measured, running
from launcher.measure.target import Target
from tests.fakes.engine import FakeEngine
from tests.launcher.measure.requests import prompts
from tests.ports import free_port


async def target_itself(target: Target) -> Target:
    return target


async def test_a_url_is_used_as_it_is_with_the_model_that_it_names(tmp_path: Path):
    async with FakeEngine(model="mine") as engine:
        target = await measured(f"{engine.url}/v1/", [], tmp_path, target_itself, key="secret")
    assert (target.url, target.model) == (engine.url, "mine")
    assert target.headers == {"authorization": "Bearer secret"}
    assert [each.metrics for each in target.engines] == [f"{engine.url}/metrics"]


async def test_a_profile_is_started_for_the_work_and_gone_afterwards(tmp_path: Path, profile: Path):
    async def work(target: Target):
        samples = await drive(target, prompts(3), Closed(1))
        return target, samples, psutil.Process().children(recursive=True)

    target, samples, processes = await measured(str(profile), [], tmp_path / "work", work)
    assert [each.error for each in samples] == [None] * 3
    assert {each.path for each in samples} == {"pd"}
    assert [each.name for each in target.engines] == ["prefill-0", "decode-0"]
    assert processes
    assert not [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    assert {each.name for each in (tmp_path / "work" / "run" / "logs").iterdir()} >= {"proxy.log", "decode-0.log"}


async def test_what_the_work_raises_comes_out_as_it_is_and_nothing_is_left(tmp_path: Path, profile: Path):
    seen = []

    async def work(target: Target) -> None:
        seen.extend(psutil.Process().children(recursive=True))
        raise MeasureError("no")

    with pytest.raises(MeasureError, match=r"^no$"):
        await measured(str(profile), [], tmp_path, work)
    assert not [each for each in seen if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


async def test_an_interruption_ends_the_deployment_and_the_command(tmp_path: Path, profile: Path):
    seen = []

    async def work(target: Target) -> None:
        seen.extend(psutil.Process().children(recursive=True))
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        await measured(str(profile), [], tmp_path, work)
    assert seen
    assert not [each for each in seen if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


async def test_a_faulty_profile_is_told_as_such(tmp_path: Path, profile: Path):
    with pytest.raises(ProfileError, match=r"proxy\.prot"):
        await measured(str(profile), ["proxy.prot=1"], tmp_path, target_itself)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, b'{"data": []}'), "has no model"),
        ((200, b"[]"), "does not answer as OpenAI's API does"),
        ((401, b"{}"), "--key"),
        ((500, b"{}"), "does not answer"),
    ],
)
async def test_a_url_without_a_model_says_what_to_do(tmp_path: Path, answer: tuple[int, bytes], said: str):
    async with FakeEngine() as engine:
        engine.instead["/v1/models"] = answer
        with pytest.raises(MeasureError, match=said):
            await measured(engine.url, [], tmp_path, target_itself)
        named = await measured(engine.url, [], tmp_path, target_itself, model="mine")
    assert named.model == "mine"


def test_without_a_deployment_in_the_run_directory_it_says_so(tmp_path: Path):
    with pytest.raises(RunDirectoryError, match="nothing runs in"):
        running(RunDirectory(tmp_path))


async def test_what_runs_in_a_run_directory_is_measured_with_its_engines(tmp_path: Path, profile: Path):
    async def work(target: Target) -> tuple[Target, Target]:
        return target, running(RunDirectory(tmp_path / "run"), "secret")

    started, found = await measured(str(profile), [], tmp_path, work)
    assert (found.url, found.model, found.engines) == (started.url, started.model, started.engines)
    assert found.headers == {"authorization": "Bearer secret"}


async def test_a_url_where_nobody_listens_says_so(tmp_path: Path):
    with pytest.raises(MeasureError, match="name the address of a running server"):
        await measured(f"http://127.0.0.1:{free_port()}", [], tmp_path, target_itself)
