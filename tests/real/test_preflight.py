"""vLLM's own parser and configuration builder judge plans before anything starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launcher import loader, machine, planner
from launcher.engine_args import ENGINE_MODULE
from launcher.preflight import engine_child
from launcher.preflight.environment import known_variables

WRONG = {
    "unknown option": (["--prefil-chunk", "3"], "parse", "unrecognized arguments: --prefil-chunk"),
    "bad choice": (["--kv-cache-dtype", "fp9"], "parse", "argument --kv-cache-dtype: invalid choice: 'fp9'"),
    "bad key": (["--kv-transfer-config", '{"kv_conector": "x"}'], "parse", "kv_conector"),
    "batch": (
        ["--max-num-batched-tokens", "3", "--max-num-seqs", "16"],
        "build",
        "max_num_batched_tokens (3) must be greater",
    ),
    "heads": (["--tensor-parallel-size", "3"], "build", "must be divisible by tensor parallel size (3)"),
    "speculation": (["--speculative-config", '{"method": "ngram", "k": 3}'], "build", "k: Unexpected keyword argument"),
}


@pytest.fixture(scope="module")
def answers(pair_profile: Path) -> dict[str, dict]:
    """vLLM's judgement of the session's pair, of one with another dtype, and of what is wrong."""
    plan = planner.plan(loader.load(str(pair_profile)), machine.look({}), name="x", run_directory=Path("/tmp/x"))
    prefill, decode = ([*each.argv[1 + len(ENGINE_MODULE) :]] for each in plan.engines)
    other = [part if part != "float32" else "bfloat16" for part in decode]
    asked = {"prefill": prefill, "decode": decode, "other dtype": other}
    asked |= {name: [*decode, *more] for name, (more, _, _) in WRONG.items()}
    env = {**plan.engines[0].env, "HF_HUB_OFFLINE": "1"}
    question = [{"name": name, "options": options, "env": env, "builds": True} for name, options in asked.items()]
    done = subprocess.run(
        [sys.executable, "-P", engine_child.__file__],
        input=json.dumps(question), capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    return {each["name"]: each for each in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", WRONG)
def test_what_vllm_refuses_is_known_before_the_start(answers, name):
    _, step, text = WRONG[name]
    assert answers[name]["step"] == step
    assert text in answers[name]["error"]
    assert "\n" not in answers[name]["error"]


def test_a_pair_that_works_passes_and_has_one_hash(answers):
    assert "error" not in answers["prefill"]
    assert answers["prefill"]["compatibility_hash"] == answers["decode"]["compatibility_hash"]
    assert answers["decode"]["block_size"] == 128


def test_a_pair_that_would_be_refused_at_its_first_request_has_two(answers):
    assert answers["prefill"]["compatibility_hash"] != answers["other dtype"]["compatibility_hash"]


def test_check_asks_vllm_once_and_then_remembers(pair_profile: Path, tmp_path: Path):
    def check(*options: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-P",
            "-m",
            "launcher",
            "check",
            str(pair_profile),
            "--set",
            "proxy.port=18399",
            *options,
        ]
        env = {**os.environ, "DUET_CACHE": str(tmp_path)}
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=240, check=False)

    first = check()
    assert first.returncode == 0, first.stdout + first.stderr
    assert len([*(tmp_path / "preflight").iterdir()]) == 1
    assert check().stdout == first.stdout
    refused = check("--layer", "engine", "--set", "roles.decode.engine_args.foo-bar=1", "--output", "json")
    assert refused.returncode == 4
    (finding,) = json.loads(refused.stdout)[str(pair_profile)]["findings"]
    assert finding["key"] == "roles.decode.engine_args.foo-bar"
    assert finding["place"].startswith("--set")


def test_the_variables_that_preflight_knows_are_those_that_vllm_reads():
    code = "import vllm.envs as e; print('\\n'.join(n for n in e.environment_variables if n.startswith('VLLM_')))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert known_variables() == frozenset(done.stdout.split())
