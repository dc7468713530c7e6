"""The keeper by itself: logs, rotation, exit codes."""

import subprocess
import sys
from pathlib import Path

from launcher.local.child import KEEPER
from launcher.local.load_progress import last_lines
from tests.launcher.local.deployments import REPOSITORY


def keep(log: Path, program: str, **options: int) -> int:
    """With a standard input that stays open, as the launcher's pipe does."""
    command = [sys.executable, "-I", "-S", KEEPER, f"--log={log}", "--log-files=2", "--grace=1"]
    command += [f"--log-bytes={options.get('log_bytes', 100_000)}", "--", sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        return process.wait(30)


def test_exit_codes_pass_through(tmp_path: Path):
    assert keep(tmp_path / "log", "raise SystemExit(7)") == 7
    assert keep(tmp_path / "log", "import os; os.kill(os.getpid(), 9)") == 128 + 9


def test_all_output_is_logged_also_the_last_line_without_an_end(tmp_path: Path):
    program = "import os; os.write(1, b'first\\n'); os.write(2, b'50%\\r100%\\nlast')"

    assert keep(tmp_path / "log", program) == 0

    assert last_lines(tmp_path / "log") == ["first", "100%", "last"]


def test_logs_rotate_and_keep_a_bounded_number(tmp_path: Path):
    program = "for i in range(2000): print(f'line {i:06}')"

    assert keep(tmp_path / "log", program, log_bytes=2000) == 0

    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["log", "log.1", "log.2"]
    assert all(file.stat().st_size <= 2000 for file in files)
    assert last_lines(tmp_path / "log")[-1] == "line 001999"


def test_bytes_that_are_no_text_do_not_stop_the_pump(tmp_path: Path):
    assert keep(tmp_path / "log", "import os; os.write(1, bytes(range(128, 256)) + b'\\nafter\\n')") == 0
    assert last_lines(tmp_path / "log")[-1] == "after"


def test_the_last_lines_are_those_of_the_last_run(tmp_path: Path):
    keep(tmp_path / "log", "print('of the first run')")
    keep(tmp_path / "log", "print('of the second run')")

    assert last_lines(tmp_path / "log") == ["of the second run"]
    assert "of the first run" in (tmp_path / "log").read_text()


HALF_ENDED = """
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # ends this thread alone
"""


def test_a_descendant_that_looks_ended_while_a_thread_of_it_goes_on_is_ended(tmp_path: Path):
    program = f"""
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {HALF_ENDED!r}])
while pathlib.Path(f"/proc/{{child.pid}}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
    pass
"""
    assert keep(tmp_path / "log", program) == 0


ENDS_ALL = """
import os, subprocess, sys
from launcher.local import keeper

keeper.prctl(keeper.PR_SET_CHILD_SUBREAPER, 1)
program = "import subprocess; print(subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL).pid)"
engine = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
left = int(engine.stdout.readline())
os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)
assert keeper.end_descendants(engine.pid)
assert {*keeper.children(os.getpid())} == {engine.pid, left}
assert (keeper.ended(engine.pid), keeper.ended(left)) == (0, 128 + 9)
keeper.take_off(0)
assert keeper.children(os.getpid()) == []
"""


def test_descendants_end_without_being_taken_off_the_process_table_which_may_block():
    subprocess.run([sys.executable, "-c", ENDS_ALL], check=True, cwd=REPOSITORY, timeout=30)
