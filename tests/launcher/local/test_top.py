"""`launcher top` of a running deployment."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import PATIENCE, REPOSITORY, wait_until

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A program on a pseudo terminal of 80 by 24."""

    def __init__(self, *command: str) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(24, 80)
        self.written = ""
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "launcher", *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TERM": "xterm", "LANG": "C.UTF-8", "COLUMNS": ""},
        )
        os.close(theirs)

    def resize(self, rows: int, columns: int) -> None:
        """Another size of the window."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        """As if from the keyboard."""
        os.write(self._ours, keys)

    def shows(self, text: str) -> bool:
        """Whether it has written this, colours aside, since it was last found to have written something."""
        self._read()
        plain = _COLOURS.sub("", self.written)
        if text not in plain:
            return False
        self.written = plain.rpartition(text)[2]
        return True

    def has_left_its_screen(self) -> bool:
        """Whether what was on the terminal before is there again."""
        self._read()
        return "\x1b[?1049l" in self.written

    def _read(self) -> None:
        while select.select([self._ours], [], [], 0)[0]:
            try:
                self.written += os.read(self._ours, 65536).decode(errors="replace")
            except OSError:  # the program has ended
                break

    def close(self) -> None:
        """The program too."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@contextmanager
def watching(folder: Path) -> Iterator[Terminal]:
    """`launcher top` of the folder's deployment."""
    terminal = Terminal("top", "--run-dir", str(folder / "run"))
    try:
        yield terminal
    finally:
        terminal.close()


def test_in_a_pipe_it_is_printed_once(launch: Launch, command, proxy_port: int):
    launch().wait_ready()
    for arguments in ((), ("--once",)):
        shown = command("top", *arguments)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.splitlines()[0].startswith(f"fakes at http://127.0.0.1:{proxy_port}")
        assert "READY" in shown.stdout
        assert "decode-0   healthy" in shown.stdout
        assert "prefill-0  decode-0  proven" in shown.stdout
    told = json.loads(command("top", "--output", "json").stdout)
    assert told["health"] == "ready"
    assert told["about"] == {
        "profile": "fakes",
        "description": "Two fake engines",
        "techniques": ["PD"],
        "stage": "pd",
        "advice": None,
    }


def test_on_a_terminal_it_follows_what_happens_and_its_size_and_ends_with_0_at_ctrl_c(
    launch: Launch, command, folder: Path
):
    launch().wait_ready()
    with watching(folder) as terminal:
        wait_until(lambda: terminal.shows("prefill-0  decode-0  proven"), lambda: terminal.written)
        assert command("drain", "decode-0", "--no-wait").returncode == 0
        wait_until(lambda: terminal.shows("drained"), lambda: terminal.written)
        terminal.resize(24, 40)
        wait_until(lambda: terminal.shows("INSTANCE   STATE    IN FLIGHT  KV CACHE"), lambda: terminal.written)
        terminal.type(b"\x03")
        assert terminal.process.wait(PATIENCE) == 0
        assert terminal.has_left_its_screen()


def test_a_proxy_that_does_not_answer_is_told_and_what_was_known_stays(launch: Launch, folder: Path):
    running = launch()
    running.wait_ready()
    with watching(folder) as terminal:
        wait_until(lambda: terminal.shows("decode-0   healthy"), lambda: terminal.written)
        os.kill(running.instance("proxy")["pid"], signal.SIGSTOP)
        try:
            wait_until(lambda: terminal.shows("does not answer"), lambda: terminal.written)
            wait_until(lambda: terminal.shows("decode-0"), lambda: terminal.written)
        finally:
            os.kill(running.instance("proxy")["pid"], signal.SIGCONT)
        wait_until(lambda: terminal.shows("READY"), lambda: terminal.written)


def test_where_nothing_runs_it_says_so(command, folder: Path):
    for arguments in ((), ("--once",), ("--output", "json")):
        refused = command("top", *arguments)
        assert refused.returncode == 4
        assert f"nothing runs in {folder / 'run'}: start it with `launcher up`" in refused.stderr
