"""SmolLM2-135M on this CPU: does the tuner find that n-grams help where text repeats, and not where it does not?"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from launcher import loader, machine
from launcher.bundled.prepare import prepare
from launcher.paths import absolute
from tests.launcher.local.deployments import REPOSITORY

_PROFILE = """\
# Ours
description: SmolLM2 by itself
extends: demo
roles:
  prefill: null    # no PD here
  decode: null
  aggregated: {kv_cache_memory: 256MiB, enforce_eager: true, max_num_seqs: 16, cores: 1}
"""
_WORKLOAD = """\
description: Answers of one length
parts:
  - ask: %s
    chat: %s
    prompt_words: {uniform: {least: 60, most: 90}}
    output_tokens: {constant: %s}
"""
_HOT = "    temperatures: [{value: 1.0}]\n"
_MODEL = "smollm2-135m-instruct"
_FEW = ["--k", "4,8", "--concurrency", "1,4", "--seconds", "20", "--rounds", "2"]


def tuned(folder: Path, ask: str, *options: str, more: str = "") -> tuple[dict[str, Any], Path]:
    """The evidence, and the profile as it was written."""
    prepare(_MODEL, machine.look(os.environ).cache, print)
    profile, workload = folder / "mine.yaml", folder / f"{ask}.yaml"
    profile.write_text(_PROFILE + more)
    repeats = ask == "repeat"
    parts = (ask, "false", 96) if repeats else (ask, "true", 64)
    workload.write_text(_WORKLOAD % parts + ("    ignore_eos: true\n" if repeats else _HOT))
    command = [sys.executable, "-m", "launcher", "tune", "speculation", str(profile), "--workload", str(workload)]
    done = subprocess.run([*command, "--work", str(folder / "work"), *_FEW, *options], cwd=REPOSITORY, check=False)
    assert done.returncode == 0
    return json.loads((folder / "mine.speculation.json").read_text())["evidence"], profile


@pytest.mark.timeout(1800)
def test_n_grams_make_text_that_repeats_several_times_as_fast_and_are_written_into_the_profile(tmp_path: Path):
    evidence, profile = tuned(tmp_path, "repeat", "--method", "ngram")
    alone = evidence["choices"][0]
    assert (alone["concurrency"], alone["method"]) == (1, "ngram")
    assert alone["k"] > 0
    assert alone["gain"]["value"] > 2
    written = loader.load(absolute(str(profile), "profile")).speculation
    assert written is not None
    assert [[*each] for each in written.schedule or ()] == evidence["schedule"]
    assert "# no PD here" in profile.read_text()


@pytest.mark.timeout(1800)
def test_n_grams_do_not_help_free_text_by_much(tmp_path: Path):
    evidence, _ = tuned(tmp_path, "write", "--method", "ngram", "--k", "4")
    assert all(each["gain"]["value"] < 1.3 for each in evidence["choices"])
    acceptance = [each["acceptance"] for each in evidence["points"] if each["acceptance"] is not None]
    assert min(acceptance) < 0.5


@pytest.mark.timeout(1800)
def test_a_draft_as_large_as_its_target_is_not_used_however_often_it_is_right(tmp_path: Path):
    """Nearly all of its tokens are accepted, and each costs what it saves."""
    prepare(_MODEL, machine.look(os.environ).cache, print)
    draft = json.dumps(str(machine.look(os.environ).cache / "models" / _MODEL))
    speculation = f"speculation: {{method: draft_model, draft: {draft}, num_speculative_tokens: 3}}\n"
    evidence, profile = tuned(
        *(tmp_path, "repeat", "--method", "draft_model", "--k", "3", "--concurrency", "1"), more=speculation
    )
    assert [each["acceptance"] > 0.9 for each in evidence["points"] if each["k"]] == [True]
    assert [each["k"] for each in evidence["choices"]] == [0]
    assert loader.load(absolute(str(profile), "profile")).speculation is None
    assert "do not speculate" in evidence["verdict"].lower()
