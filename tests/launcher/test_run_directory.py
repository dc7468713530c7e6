"""State, plan and lock of a run directory."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from launcher.errors import RunDirectoryError
from launcher.local.deployment import Deployment, InstanceState, State
from launcher.local.run_directory import RunDirectory
from launcher.plan import PlannedFile, to_json
from tests.launcher.builders import plan

WATCHER = """
import sys, pathlib
from launcher.local.run_directory import RunDirectory
print("looks", flush=True)
while True:
    RunDirectory(pathlib.Path(sys.argv[1])).holder()
"""
DEPLOYMENT = Deployment(
    profile="demo",
    launcher_pid=4711,
    mark="0123",
    started_at=1.5,
    address="http://127.0.0.1:8000",
    model="smollm2",
    ready=True,
    stops_within=28.0,
    instances=(
        InstanceState("prefill-0", "prefill", "http://127.0.0.1:8100", State.READY, 1, 2, 3.5, 4, None),
        InstanceState("proxy", "proxy", "http://127.0.0.1:8000", State.FAILED, reason="crash loop"),
    ),
)
HOLDER = """
import sys, pathlib
from launcher.local.run_directory import RunDirectory
with RunDirectory(pathlib.Path(sys.argv[1])).hold():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other_launcher(tmp_path):
    """A process that holds ``tmp_path/run``."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_two_launchers_cannot_hold_one_directory(tmp_path, other_launcher):
    with pytest.raises(RunDirectoryError) as caught, RunDirectory(tmp_path / "run").hold():
        pass
    assert f"a launcher (pid {other_launcher.pid}) already runs a deployment in {tmp_path / 'run'}" in str(caught.value)
    assert "launcher down" in str(caught.value)
    assert caught.value.exit_code == 4


def test_the_holder_is_known(tmp_path, other_launcher):
    assert RunDirectory(tmp_path / "run").holder() == other_launcher.pid


def test_a_killed_holder_is_no_holder(tmp_path, other_launcher):
    other_launcher.send_signal(signal.SIGKILL)
    other_launcher.wait()
    directory = RunDirectory(tmp_path / "run")
    assert directory.holder() is None
    with directory.hold():
        assert directory.holder() == os.getpid()
    assert directory.holder() is None


def test_a_directory_that_is_not_there_has_no_holder(tmp_path):
    assert RunDirectory(tmp_path / "never").holder() is None
    assert not (tmp_path / "never").exists()


def test_looking_for_the_holder_does_not_keep_a_launcher_out(tmp_path):
    """`status` may look at the very moment in which `up` starts."""
    directory = RunDirectory(tmp_path)
    with directory.hold():
        pass
    with subprocess.Popen([sys.executable, "-c", WATCHER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as watcher:
        try:
            assert watcher.stdout.readline() == "looks\n"
            for _ in range(300):
                with directory.hold():
                    pass
        finally:
            watcher.kill()


def test_state_comes_back_as_it_was_written(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.write_state(DEPLOYMENT)
    assert directory.read_state() == DEPLOYMENT


def test_no_state_is_no_deployment(tmp_path):
    assert RunDirectory(tmp_path).read_state() is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"profile": 1}', b"\xff\xfe"])
def test_a_broken_state_is_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "state.json").write_bytes(content)
    with pytest.raises(RunDirectoryError, match=r"state\.json does not hold a deployment's state"):
        RunDirectory(tmp_path).read_state()


def test_a_new_state_replaces_the_old_file_at_once(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.write_state(DEPLOYMENT)
    with (tmp_path / "state.json").open() as reader:
        directory.write_state(Deployment("other", 1, 2.0, "mark", "", "", False, 10.0, ()))
        assert '"demo"' in reader.read()
    assert directory.read_state().profile == "other"
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]


def test_the_plan_and_its_files_are_written(tmp_path):
    settled = plan("demo")
    moved = replace(settled, files=(PlannedFile(str(tmp_path / "proxy.json"), "{}"),))
    RunDirectory(tmp_path).write_plan(moved)
    assert (tmp_path / "plan.json").read_text() == to_json(moved)
    assert (tmp_path / "proxy.json").read_text() == "{}"


def test_a_path_below_a_file_cannot_be_a_run_directory(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError) as caught, RunDirectory(tmp_path / "file" / "run").hold():
        pass
    assert f"cannot write to the run directory {tmp_path / 'file' / 'run'}" in str(caught.value)
    assert "--run-dir" in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_write_permission_is_refused(tmp_path):
    (tmp_path / "logs").mkdir()
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(RunDirectoryError, match="Permission denied"), RunDirectory(tmp_path).hold():
            pass
    finally:
        tmp_path.chmod(0o700)


def test_logs_are_listed_by_instance_without_their_rotated_parts(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.create()
    for name in ("prefill-0.log", "prefill-0.log.1", "decode-0.log"):
        (tmp_path / "logs" / name).touch()
    assert directory.logged_instances() == ["decode-0", "prefill-0"]
    assert directory.log("decode-0") == tmp_path / "logs" / "decode-0.log"


def test_files_that_do_not_change_are_kept_fresh(tmp_path):
    directory = RunDirectory(tmp_path)
    with directory.hold():
        for file in tmp_path.iterdir():
            os.utime(file, (0, 0))
        directory.freshen()
    assert min(file.stat().st_mtime for file in tmp_path.iterdir()) > 0


def test_a_state_is_not_written_into_another_launcher_s_directory(tmp_path):
    directory = RunDirectory(tmp_path)
    with directory.hold():
        (tmp_path / "lock").unlink()
        (tmp_path / "lock").touch()
        with pytest.raises(RunDirectoryError, match="removed or replaced"):
            directory.write_state(DEPLOYMENT)
    assert not (tmp_path / "state.json").exists()


async def test_a_directory_that_is_gone_is_noticed(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    with directory.hold():
        (tmp_path / "run").rename(tmp_path / "elsewhere")
        with pytest.raises(RunDirectoryError, match="was removed or replaced while the deployment ran"):
            await directory.lost()
