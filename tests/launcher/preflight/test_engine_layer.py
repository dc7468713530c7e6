"""What is made of vLLM's own judgement; here a scripted program answers in its place, in tests/real vLLM does."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.preflight import engine
from launcher.preflight.engine import NotAsked
from tests.launcher.builders import MACHINE, case, model_folder

FINE = {"compatibility_hash": "a" * 64}


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path / "model")


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    monkeypatch.setattr(engine, "find_spec", lambda name: object())


def judged(tmp_path: Path, folder: Path, *answers: dict, overrides=(), script: str | None = None, cache=None):
    """What is found of a pair for which the engine answers so, one answer for prefill and one for decode."""
    lines = [
        json.dumps({"name": f"{role}-0", **answer})
        for role, answer in zip(("prefill", "decode"), answers, strict=False)
    ]
    program = tmp_path / "python"
    body = script or "cat > /dev/null\n" + "".join(f"echo '{line}'\n" for line in lines)
    program.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\n{body}")
    program.chmod(0o755)
    machine = replace(MACHINE, python=str(program))
    given = case("demo", "model.bundled=null", f'model.path="{folder}"', *overrides, machine=machine)
    return [*engine.judge(given, cache)]


def times_asked(tmp_path):
    file = tmp_path / "asked"
    return file.read_text().count("asked") if file.exists() else 0


def test_an_engine_without_objections_finds_nothing(tmp_path, folder):
    assert judged(tmp_path, folder, FINE, FINE) == []


def test_an_option_that_does_not_exist_is_told_at_its_key(tmp_path, folder):
    error = {"step": "parse", "error": "unrecognized arguments: --foo-bar; --foo-bar: did you mean --foo?"}
    ((rule, fault),) = judged(tmp_path, folder, FINE, error, overrides=("roles.decode.engine_args.foo_bar=1",))
    assert rule.name == "engine/command-line"
    assert fault.key == "roles.decode.engine_args.foo_bar"
    assert "did you mean --foo?" in fault.what


def test_a_setting_that_the_engine_refuses_is_told_at_the_profile_s_key(tmp_path, folder):
    error = {"step": "build", "error": "max_num_batched_tokens (3) must be greater than or equal to max_num_seqs (16)."}
    ((rule, fault),) = judged(tmp_path, folder, error, FINE)
    assert (rule.name, fault.key) == ("engine/configuration", "roles.prefill.max_num_seqs")


def test_an_objection_that_names_no_key_is_told_at_the_role(tmp_path, folder):
    ((_, fault),) = judged(tmp_path, folder, FINE, {"step": "build", "error": "no."})
    assert fault.key == "roles.decode"


def test_engines_that_would_keep_apart_are_found(tmp_path, folder):
    ((rule, fault),) = judged(tmp_path, folder, FINE, {"compatibility_hash": "b" * 64})
    assert rule.name == "engine/compatibility-hash"
    assert fault.values == {"roles.prefill": "a" * 64, "roles.decode": "b" * 64}


@pytest.mark.parametrize("script", ["exit 3", "echo nothing; exit 0", "echo '{}'; echo 'it broke' >&2; exit 1"])
def test_an_engine_that_cannot_be_asked_is_said_and_is_no_fault(tmp_path, folder, script):
    (answer,) = judged(tmp_path, folder, script=script)
    assert isinstance(answer, NotAsked)
    assert "could not be asked" in answer.reason


def test_a_plan_that_passed_is_not_asked_about_again(tmp_path, folder):
    cache = tmp_path / "cache"
    for _ in range(2):
        assert judged(tmp_path, folder, FINE, FINE, cache=cache) == []
    assert times_asked(tmp_path) == 1
    assert judged(tmp_path, folder, FINE, FINE, cache=cache, overrides=("roles.decode.max_num_seqs=8",)) == []
    assert times_asked(tmp_path) == 2


def test_a_plan_that_failed_is_asked_about_again(tmp_path, folder):
    for _ in range(2):
        assert judged(tmp_path, folder, FINE, {"step": "build", "error": "no."}, cache=tmp_path / "cache")
    assert times_asked(tmp_path) == 2


def test_without_the_engine_that_is_said(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    assert judged(tmp_path, folder) == [
        NotAsked("vLLM is not installed here: its own parser and configuration were not asked")
    ]
    assert times_asked(tmp_path) == 0


def test_another_engine_command_is_not_asked(tmp_path, folder):
    (answer,) = judged(tmp_path, folder, overrides=("engine_command=[other]",))
    assert isinstance(answer, NotAsked)
    assert answer.reason.startswith("engine_command starts another program")


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (("device=cuda",), "no GPU here"),
        (("model.path=/gone",), "is not on this machine"),
    ],
)
def test_what_cannot_be_built_here_is_parsed_only(tmp_path, folder, monkeypatch, overrides, reason):
    monkeypatch.setattr("tests.launcher.preflight.test_engine_layer.MACHINE", replace(MACHINE, gpus=()))
    (answer,) = judged(tmp_path, folder, {}, {}, overrides=overrides)
    assert isinstance(answer, NotAsked)
    assert reason in answer.reason
    assert times_asked(tmp_path) == 1


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, folder):
    (tmp_path / "cache").write_text("a file")
    for _ in range(2):
        assert judged(tmp_path, folder, FINE, FINE, cache=tmp_path / "cache") == []
    assert times_asked(tmp_path) == 2


def test_what_it_says_of_a_pools_engine_is_told_at_the_pools_key(tmp_path, folder):
    error = {"step": "build", "error": "max_num_seqs is too large"}
    said = [
        {"name": "prefill-0", **FINE},
        {"name": "decode-0", **FINE},
        {"name": "prefill-other-0", "compatibility_hash": "b" * 64},
        {"name": "decode-other-0", "compatibility_hash": "b" * 64},
    ]
    script = "cat > /dev/null\n" + "".join(f"echo '{json.dumps(each)}'\n" for each in said)
    assert judged(tmp_path, folder, script=script, overrides=("pools.other={}",)) == []
    script = script.replace(json.dumps(said[3]), json.dumps({"name": "decode-other-0", **error}))
    ((_, fault),) = judged(tmp_path, folder, script=script, overrides=("pools.other={}",))
    assert fault.key == "pools.other.roles.decode.max_num_seqs"
