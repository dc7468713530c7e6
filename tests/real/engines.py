"""Single real engines, as the launcher would start them, for deployments that it would refuse."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.launcher.local.deployments import REPOSITORY, survivors, wait_until

_START_BUDGET = 180


@dataclass(frozen=True)
class Engine:
    """A running engine."""

    url: str
    process: psutil.Process


@contextlib.contextmanager
def engine(profile: Path, name: str, port: int, changes: list[str], folder: Path) -> Iterator[Engine]:
    """The engine ``name`` of a profile with some values changed (``KEY.PATH=VALUE``); gone afterwards."""
    changes = [*changes, f"ports.engine={port}", f"ports.side_channel={port + 50}"]
    options = [part for change in changes for part in ("--set", change)]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "launcher", "plan", str(profile), *options, "--output", "json"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    planned = next(each for each in json.loads(done.stdout)["engines"] if each["name"] == name)
    url = f"http://{planned['host']}:{planned['port']}"
    with (folder / f"{name}-{port}.log").open("w") as log:
        process = subprocess.Popen(
            planned["argv"], env={**os.environ, **planned["env"]}, stdout=log, stderr=log, process_group=0
        )
    running = psutil.Process(process.pid)
    try:
        wait_until(lambda: _answers(url, process), lambda: _end_of(folder / f"{name}-{port}.log"), _START_BUDGET)
        yield Engine(url, running)
    finally:
        family = [running, *running.children(recursive=True)] if running.is_running() else []
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        process.wait()
        assert not survivors(family)


def _answers(url: str, process: subprocess.Popen) -> bool:
    assert process.poll() is None, "the engine ended"
    try:
        return httpx.get(f"{url}/health", trust_env=False, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def _end_of(log: Path) -> str:
    return log.read_text()[-3000:]
