"""What the launcher makes of a keeper's two lines."""

import os
import signal
from pathlib import Path

import pytest

from launcher.local import child
from launcher.local.child import Child, Command

HANGS_AFTER_ITS_REPORT = """
import time
print(4711, flush=True)
print(137, flush=True)
time.sleep(600)
"""


async def test_an_end_is_known_though_the_keeper_hangs_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    keeper = tmp_path / "keeper.py"
    keeper.write_text(HANGS_AFTER_ITS_REPORT)
    monkeypatch.setattr(child, "KEEPER", str(keeper))
    monkeypatch.setattr(child, "LAST_STEPS", 0.0)
    running = await Child.start(Command(["engine"], {}, tmp_path / "log", grace=1.0, mark="deployment/engine"))
    try:
        assert running.pid == 4711
        assert await running.wait() == 137
    finally:
        os.kill(running.keeper_pid, signal.SIGKILL)
    assert await running.stop() == 137
