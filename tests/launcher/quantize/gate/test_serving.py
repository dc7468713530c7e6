"""Serving one side of a comparison: a fake engine in a keeper, started by the plan of a profile made for it."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
import pytest

from launcher.errors import InstanceDiedError, NotReadyError, QuantizeError
from launcher.profile import Device
from launcher.quantize.gate.records import Record
from launcher.quantize.gate.scoring import score
from launcher.quantize.gate.serving import serve
from launcher.quantize.gate.settings import NAME, Serving, default
from tests.launcher.builders import model_folder
from tests.launcher.local.deployments import REPOSITORY, survivors

FAKE = (sys.executable, "-m", "tests.fakes.engine")
RECORDS = [Record([1, 2, 3], [(1, 3)])]


@pytest.fixture
def serving() -> Serving:
    return replace(default(Device.CPU, 2049), engine_command=FAKE, startup_timeout=30)


def environ(**faults: str) -> Mapping[str, str]:
    told = {f"FAKE_ENGINE_{name.upper()}": value for name, value in faults.items()}
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), **told}


async def test_a_model_is_served_and_gone_afterwards(tmp_path: Path, serving: Serving):
    log = tmp_path / "logs" / "baseline.log"
    async with serve(model_folder(tmp_path / "a model"), serving, log, environ()) as url:
        made = await score(url, NAME, RECORDS, None, lambda *_: None)
        engine = next(each for each in psutil.Process().children(recursive=True) if "--port" in each.cmdline())
    assert made.records[0].positions == 2
    assert not survivors([engine])
    assert "fake aggregated engine listens" in log.read_text()
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(url)


async def test_an_engine_that_cannot_start_is_told_with_its_last_lines(tmp_path: Path, serving: Serving):
    said = environ(crash_at_start="ValueError: no such scheme")
    with pytest.raises(InstanceDiedError, match="aggregated-0 ended with code 1") as error:
        async with serve(tmp_path, serving, tmp_path / "log", said):
            pass
    assert any("no such scheme" in line for line in error.value.log_tail)


async def test_an_engine_that_is_not_ready_in_time_is_told(tmp_path: Path, serving: Serving):
    slow = replace(serving, startup_timeout=1)
    with pytest.raises(NotReadyError, match="was not ready 1 s after its start"):
        async with serve(tmp_path, slow, tmp_path / "log", environ(start_delay="600")):
            pass
    assert not [each for each in psutil.Process().children(recursive=True) if "--port" in each.cmdline()]


async def test_an_engine_that_ends_while_it_is_asked_is_told_as_that(tmp_path: Path, serving: Serving):
    async def ask_until_it_ends() -> None:
        async with serve(tmp_path, serving, tmp_path / "log", environ(crash_after="1")) as url:
            while True:
                await score(url, NAME, RECORDS, None, lambda *_: None)

    with pytest.raises(InstanceDiedError, match="ended with code 1"):
        await ask_until_it_ends()


async def test_an_error_of_the_comparison_itself_stays(tmp_path: Path, serving: Serving, monkeypatch):
    monkeypatch.setattr("launcher.quantize.gate.serving._LAST_BREATH", 0.0)
    with pytest.raises(QuantizeError, match="maximum context length"):
        async with serve(tmp_path, serving, tmp_path / "log", environ()) as url:
            await score(url, NAME, [Record([1] * 5000, [(1, 2)])], None, lambda *_: None)


async def test_a_log_that_cannot_be_written_is_named(tmp_path: Path, serving: Serving):
    (tmp_path / "file").touch()
    with pytest.raises(QuantizeError, match=r"cannot write the engine's log .*/file/log"):
        async with serve(tmp_path, serving, tmp_path / "file" / "log", environ()):
            pass


SERVES = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from launcher.profile import Device
from launcher.quantize.gate.serving import serve
from launcher.quantize.gate.settings import default

async def main():
    serving = replace(default(Device.CPU, 2049), engine_command=tuple(sys.argv[2:]))
    async with serve(Path(sys.argv[1]), serving, Path(sys.argv[1]) / "log") as url:
        print(url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_nothing_is_left_when_the_parent_is_killed(tmp_path: Path):
    command = [sys.executable, "-c", SERVES, str(tmp_path), *FAKE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ(), process_group=0) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().startswith(b"http://127.0.0.1:")
        family = psutil.Process(parent.pid).children(recursive=True)
        assert any("--port" in each.cmdline() for each in family)
        parent.send_signal(signal.SIGKILL)
    assert not survivors(family)
