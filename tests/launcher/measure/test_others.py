"""How busy the machine is with something else."""

import subprocess
import sys

import psutil
import pytest

from launcher.measure.others import Others

WORKS = "sum(range(10**7)); print(flush=True); input()"


def works() -> subprocess.Popen:
    """A child that has used a processor and still lives."""
    child = subprocess.Popen([sys.executable, "-c", WORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return child


def test_what_our_children_use_is_not_of_others(monkeypatch: pytest.MonkeyPatch):
    before = psutil.cpu_times()
    monkeypatch.setattr(psutil, "cpu_times", lambda: before)
    others = Others()
    with works() as child:
        used = sum(psutil.Process(child.pid).cpu_times()[:2])
        monkeypatch.setattr(psutil, "cpu_times", lambda: before._replace(user=before.user + used, idle=before.idle + 1))
        assert used > 0.05
        assert others.share() < 0.01
        child.communicate(b"\n")


def test_what_others_use_is_a_share_of_all(monkeypatch: pytest.MonkeyPatch):
    before = psutil.cpu_times()
    monkeypatch.setattr(psutil, "cpu_times", lambda: before)
    others = Others()
    monkeypatch.setattr(psutil, "cpu_times", lambda: before._replace(user=before.user + 600, idle=before.idle + 400))
    assert others.share() == pytest.approx(0.6, abs=0.01)
