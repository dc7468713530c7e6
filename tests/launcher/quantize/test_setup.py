"""The interpreter of its own is made whole or not at all."""

import subprocess
import sys

import pytest

from launcher.errors import QuantizeError
from launcher.quantize import setup


@pytest.fixture
def pip(tmp_path, monkeypatch):
    """Stands in for this interpreter: makes an environment whose python does what the file ``does`` says."""
    does = tmp_path / "does"
    does.write_text("exit 0")
    program = tmp_path / "makes"
    program.write_text(
        f"""#!/bin/sh
mkdir -p "$3/bin"
printf '#!/bin/sh\\n. {does}\\n' > "$3/bin/python"
chmod +x "$3/bin/python"
"""
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return does


def test_it_is_made_once(pip, tmp_path):
    told = []
    python = setup.make(tmp_path / "cache", told.append)
    assert setup.make(tmp_path / "cache", told.append) == python == setup.worker_python(None, tmp_path / "cache", {})
    assert len(told) == 1


def test_what_pip_said_is_shown_and_nothing_is_left(pip, tmp_path):
    pip.write_text("echo no such package; exit 1")
    with pytest.raises(QuantizeError, match="could not install llm-compressor") as caught:
        setup.make(tmp_path / "cache", lambda _: None)
    assert caught.value.log_tail == ("no such package",)
    assert not setup.folder(tmp_path / "cache").exists()


def test_one_that_was_interrupted_by_force_is_not_taken_for_whole(pip, tmp_path):
    cache = tmp_path / "cache"
    pip.write_text("kill -9 $PPID")
    program = f"import sys; sys.executable = {sys.executable!r}; from launcher.quantize import setup; "
    program += f"from pathlib import Path; setup.make(Path({str(cache)!r}), print)"
    done = subprocess.run([REAL, "-c", program], check=False, capture_output=True)
    assert done.returncode == -9
    assert (setup.folder(cache) / "bin" / "python").exists()
    with pytest.raises(QuantizeError, match="run `launcher quantize setup`"):
        setup.worker_python(None, cache, {})
    pip.write_text("exit 0")
    assert setup.make(cache, lambda _: None).exists()
    assert setup.worker_python(None, cache, {}).exists()


REAL = sys.executable
