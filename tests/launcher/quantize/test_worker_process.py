"""What a worker tells, and how it ends."""

import os
import sys
from pathlib import Path

import pytest

from launcher.errors import QuantizeError
from launcher.quantize import setup
from launcher.quantize.worker_process import Worker


class Heard:
    """A listener that remembers."""

    def __init__(self):
        self.said = []

    def progress(self, title, done, of):
        self.said.append((title, done, of))

    def note(self, text):
        self.said.append(text)


def worker(tmp_path, script):
    """A worker whose interpreter does ``script`` instead, with the job's file in JOB."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nJOB=$4\n{script}\n")
    python.chmod(0o755)
    heard = Heard()
    return Worker(python, tmp_path, os.environ, heard), heard


def test_events_are_heard_and_the_result_is_read(tmp_path):
    script = """
    echo '{"event": "progress", "title": "working", "done": 1, "of": 2}'
    echo '{"event": "note", "text": "look"}'
    echo '{"answer": 42}' > "${JOB%.job.json}.json"
    """
    asked, heard = worker(tmp_path, script)
    assert asked.run("step", {"step": "quantize"}) == {"answer": 42}
    assert heard.said == [("working", 1, 2), "look"]


def test_a_refusal_is_told_in_the_workers_words(tmp_path):
    asked, _ = worker(tmp_path, """echo '{"event": "error", "text": "no such file"}'; exit 3""")
    with pytest.raises(QuantizeError, match=r"^no such file$"):
        asked.run("step", {"step": "quantize"})


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo Traceback >&2; exit 1", "the step step ended with 1: what it wrote last is above"),
        ("kill -9 $$", "ended with -9: it ran out of memory"),
        ("echo 'torch.OutOfMemoryError: CUDA out of memory' >&2; exit 1", "fewer or shorter records"),
    ],
)
def test_a_crash_is_told_with_the_end_of_its_log(tmp_path, script, said):
    asked, _ = worker(tmp_path, script)
    with pytest.raises(QuantizeError, match=said) as caught:
        asked.run("step", {"step": "quantize"})
    assert "step.log" in str(caught.value)


def test_the_steps_code_runs_by_itself_and_refuses_a_step_it_does_not_know(tmp_path):
    asked = Worker(Path(sys.executable), tmp_path, os.environ, Heard())
    with pytest.raises(QuantizeError, match="step 'dance' is none of prepare, count, quantize, sensitivity"):
        asked.run("step", {"step": "dance"})


def test_without_an_interpreter_it_is_told_how_to_make_one(tmp_path):
    with pytest.raises(QuantizeError, match="run `launcher quantize setup`"):
        setup.worker_python(None, tmp_path, {})
    with pytest.raises(QuantizeError, match="there is no interpreter"):
        setup.worker_python(tmp_path / "python", tmp_path, {})


def test_a_given_interpreter_comes_before_one_that_was_made(tmp_path):
    made = setup.folder(tmp_path) / "bin" / "python"
    made.parent.mkdir(parents=True)
    made.touch()
    assert setup.worker_python(None, tmp_path, {}) == made
    assert setup.worker_python(None, tmp_path, {setup.VARIABLE: sys.executable}) == Path(sys.executable)


def test_what_a_library_prints_is_no_event(tmp_path):
    script = """echo 'Loading...'; echo 5; echo '{}' ; echo '{"answer": 42}' > "${JOB%.job.json}.json" """
    asked, heard = worker(tmp_path, script)
    assert asked.run("step", {"step": "quantize"}) == {"answer": 42}
    assert heard.said == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "ModuleNotFoundError: No module named 'torch'",
            "lacks a package: name an interpreter that has llm-compressor",
        ),
        ("OSError: [Errno 28] No space left on device", "the disk is full: free some space"),
    ],
)
def test_a_crash_with_a_known_cause_says_what_to_do(tmp_path, text, said):
    asked, _ = worker(tmp_path, f'echo "{text}" >&2; exit 1')
    with pytest.raises(QuantizeError, match=said):
        asked.run("step", {"step": "quantize"})


def test_an_interpreter_that_cannot_be_run_is_named(tmp_path):
    asked, _ = worker(tmp_path, "")
    (tmp_path / "python").chmod(0o644)
    with pytest.raises(QuantizeError, match=r"python cannot be run \(Permission denied\)"):
        asked.run("step", {"step": "quantize"})
