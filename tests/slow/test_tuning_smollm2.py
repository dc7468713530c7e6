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
    output_tokens: {constant: 40}
"""
_FEW = ["--k", "3,6", "--concurrency", "1,4", "--seconds", "16", "--rounds", "2"]


def tuned(folder: Path, ask: str, chat: str) -> tuple[dict[str, Any], Path]:
    """The evidence, and the profile as it was written."""
    prepare("smollm2-135m-instruct", machine.look(os.environ).cache, print)
    profile, workload = folder / "mine.yaml", folder / f"{ask}.yaml"
    profile.write_text(_PROFILE)
    workload.write_text(_WORKLOAD % (ask, chat) + ("    ignore_eos: true\n" if ask == "repeat" else ""))
    command = [sys.executable, "-m", "launcher", "tune", "speculation", str(profile), "--workload", str(workload)]
    done = subprocess.run([*command, "--work", str(folder / "work"), *_FEW], cwd=REPOSITORY, check=False)
    assert done.returncode == 0
    return json.loads((folder / "mine.speculation.json").read_text())["evidence"], profile


@pytest.mark.timeout(1800)
def test_n_grams_help_text_that_repeats_and_are_written_into_the_profile(tmp_path: Path):
    evidence, profile = tuned(tmp_path, "repeat", "false")
    alone = evidence["choices"][0]
    assert (alone["concurrency"], alone["method"]) == (1, "ngram")
    assert alone["k"] > 0
    assert alone["gain"]["value"] > 1.5
    written = loader.load(absolute(str(profile), "profile")).speculation
    assert written is not None
    assert [[*each] for each in written.schedule or ()] == evidence["schedule"]
    assert "# no PD here" in profile.read_text()


@pytest.mark.timeout(1800)
def test_n_grams_do_not_help_free_text_by_much(tmp_path: Path):
    evidence, _ = tuned(tmp_path, "write", "true")
    assert all(each["gain"]["value"] < 1.3 for each in evidence["choices"])
    acceptance = [each["acceptance"] for each in evidence["points"] if each["acceptance"] is not None]
    assert min(acceptance) < 0.6
