"""What units call: as programs, as systemd calls them."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.engine import FakeEngine
from tests.launcher.local.deployments import REPOSITORY
from tests.ports import free_port

SECRET = "hf_very-secret"


def hook(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "launcher.systemd.hooks", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environ},
    )


async def test_ready_returns_when_the_engine_answers():
    async with FakeEngine() as engine:
        done = await asyncio.to_thread(hook, "ready", f"{engine.url}/health", "--within=30", MAINPID=str(os.getpid()))
    assert (done.returncode, done.stderr) == (0, "")


async def test_ready_ends_when_the_budget_is_used_up():
    async with FakeEngine() as engine:
        engine.health = 503
        done = await asyncio.to_thread(hook, "ready", f"{engine.url}/health", "--within=0.5", MAINPID=str(os.getpid()))
    assert done.returncode == 6
    assert "raise startup_timeout" in done.stderr


def test_ready_ends_when_the_main_process_has():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    done = hook("ready", f"http://127.0.0.1:{free_port()}/health", "--within=600", MAINPID=str(ended.pid))
    assert done.returncode == 5
    assert f"process {ended.pid} ended before it answered" in done.stderr


@pytest.fixture
def pinned() -> Iterator[int]:
    """The pid of a process that may use one core."""
    program = "import os; os.sched_setaffinity(0, [max(os.sched_getaffinity(0))]); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")


async def test_an_engine_on_a_cpu_gets_its_cores_back(pinned: int):
    async with FakeEngine() as engine:
        done = await asyncio.to_thread(
            hook, "ready", f"{engine.url}/health", "--within=30", "--settle", MAINPID=str(pinned)
        )
    assert done.returncode == 0, done.stderr
    assert os.sched_getaffinity(pinned) == os.sched_getaffinity(0)


def test_run_becomes_the_program_with_its_secrets(tmp_path: Path):
    (tmp_path / "HF_TOKEN").write_text(f"{SECRET}\n")
    program = "import os, sys; print(os.environ['HF_TOKEN'], os.environ['KEY'], sys.argv[1:])"
    sources = ("HF_TOKEN=credential", "KEY=env:TOKEN")
    done = hook(
        *("run", *sources, "--", sys.executable, "-c", program, "--a", "--", "b c"),
        CREDENTIALS_DIRECTORY=str(tmp_path),
        TOKEN="of a file",
    )
    assert (done.returncode, done.stdout) == (0, f"{SECRET} of a file ['--a', '--', 'b c']\n")


@pytest.mark.parametrize("environ", [{}, {"CREDENTIALS_DIRECTORY": "/nonexistent"}])
def test_run_names_a_secret_that_is_not_there(environ: dict[str, str]):
    done = hook("run", "HF_TOKEN=credential", "KEY=env:DUET_NO_SUCH", "--", "/bin/true", **environ)
    assert done.returncode == 4
    assert "secret HF_TOKEN: the file" in done.stderr


def test_free_returns_at_once_where_the_driver_tells_nothing():
    done = hook("free", "GPU-does-not-exist", "99")
    assert (done.returncode, done.stderr) == (0, "")
