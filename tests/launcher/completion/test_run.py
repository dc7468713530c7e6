"""Shells ask as the scripts do that `launcher --install-completion` installs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.completion import get_completion_script

from launcher.completion import reading
from launcher.completion.shells import Line, answer, line
from tests.launcher.local.deployments import REPOSITORY


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def complete(shell: str, cache: Path, folder: Path, **asked: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-X", "importtime", "-m", "launcher"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
        env={
            **os.environ,
            **{"PYTHONPATH": str(REPOSITORY), "DUET_CACHE": str(cache), "_LAUNCHER_COMPLETE": f"complete_{shell}"},
            **asked,
        },
    )


def in_bash(cache: Path, folder: Path, *words: str, **environ: str) -> list[str]:
    done = complete("bash", cache, folder, COMP_WORDS="\n".join(words), COMP_CWORD=str(len(words) - 1), **environ)
    assert done.returncode == 0
    return done.stdout.splitlines()


def test_profiles_are_the_shipped_ones_and_files(cache: Path, tmp_path: Path):
    (tmp_path / "des").mkdir()
    (tmp_path / "des" / "mine.yaml").touch()
    (tmp_path / "deep.yaml").touch()
    (tmp_path / "denied.txt").touch()
    assert in_bash(cache, tmp_path, "launcher", "up", "de") == ["deep.yaml", "demo", "des/"]
    assert in_bash(cache, tmp_path, "launcher", "up", "des/") == ["des/mine.yaml"]


def test_instances_are_those_of_the_deployment_that_is_meant(cache: Path, tmp_path: Path):
    state = {"instances": [{"name": "prefill-0"}, {"name": "decode-0"}]}
    (tmp_path / "state.json").write_text(json.dumps(state))
    directory = str(tmp_path)
    assert in_bash(cache, tmp_path, "launcher", "drain", "", DUET_RUN_DIR=directory) == ["decode-0", "prefill-0"]
    assert in_bash(cache, tmp_path, "launcher", "drain", "--run-dir", directory, "decode-0", "") == ["prefill-0"]
    assert in_bash(cache, tmp_path, "launcher", "restart", "--run-dir", "=", directory, "d") == ["decode-0"]


def test_keys_come_from_the_schema_of_profiles(cache: Path, tmp_path: Path):
    assert in_bash(cache, tmp_path, "launcher", "plan", "demo", "--set", "roles.decode.rep") == [
        "roles.decode.replicas="
    ]
    words = ("launcher", "plan", "demo", "--set", "kv_transfer.load_failure_policy", "=")
    assert sorted(in_bash(cache, tmp_path, *words)) == ["fail", "recompute"]
    assert in_bash(cache, tmp_path, *words, "r") == ["recompute"]


def test_from_the_second_time_on_nothing_slow_is_imported(cache: Path, tmp_path: Path):
    in_bash(cache, tmp_path, "launcher", "")
    again = complete("bash", cache, tmp_path, COMP_WORDS="launcher\nup", COMP_CWORD="1")
    assert again.stdout == "up\n"
    imported = {each.rpartition("|")[2].strip() for each in again.stderr.splitlines()}
    assert "launcher.completion.run" in imported
    assert imported.isdisjoint({"typer", "pydantic", "httpx", "asyncio", "rich", "yaml", "launcher.cli"})


def test_a_vocabulary_of_other_code_is_made_anew(tmp_path: Path):
    (tmp_path / "completion.json").write_text('{"stamp": "old", "vocabulary": {}}')
    assert in_bash(tmp_path, tmp_path, "launcher", "restar") == ["restart"]
    assert json.loads((tmp_path / "completion.json").read_text())["stamp"] != "old"


@pytest.mark.parametrize(
    "asked",
    [{}, {"COMP_WORDS": "launcher", "COMP_CWORD": "x"}, {"COMP_WORDS": "launcher\ndrain\n", "COMP_CWORD": "2"}],
)
def test_a_prompt_never_sees_an_error(cache: Path, tmp_path: Path, asked: dict[str, str]):
    done = complete("bash", cache, tmp_path, DUET_RUN_DIR="/nonexistent", **asked)
    assert (done.returncode, done.stdout) == (0, "")
    assert not [each for each in done.stderr.splitlines() if not each.startswith("import time:")]


def test_it_works_where_the_cache_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").touch()
    assert in_bash(tmp_path / "file", tmp_path, "launcher", "restar") == ["restart"]


def test_every_verb_and_option_is_known():
    known = reading.read()
    assert known.verbs["render"].options["--to"].choices == ("helm", "systemd")
    assert known.verbs["logs"].options.keys() >= {"-f", "--follow", "-n", "--lines", "--run-dir", "--help"}
    assert known.verbs["drain"].options["--no-wait"] is None
    assert known.verbs["advise"].options["--no-memory"] is None
    assert known.verbs["up"].argument.kind == "profile"
    assert known.verbs["logs"].argument.kind == "instance"
    assert known.verbs["check"].argument.kind == "profile"


@pytest.mark.parametrize(
    ("words", "number", "expected"),
    [
        ("launcher up", 1, Line([], "up", "")),
        ("launcher up demo", 3, Line(["up", "demo"], "", "")),
        ("launcher up --set proxy.port = 9", 5, Line(["up", "--set"], "proxy.port=9", "proxy.port=")),
        ("launcher up --set proxy.port =", 4, Line(["up", "--set"], "proxy.port=", "proxy.port=")),
        ("launcher up --set = mod", 4, Line(["up"], "--set=mod", "--set=")),
        ("launcher up 'a b", 2, Line(["up"], "a b", "")),
    ],
)
def test_bash_splits_at_equals_signs(words: str, number: int, expected: Line):
    assert line("bash", {"COMP_WORDS": words, "COMP_CWORD": str(number)}) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("launcher up de", Line(["up"], "de")),
        ("launcher up demo ", Line(["up", "demo"], "")),
        ("launcher ", Line([], "")),
        ("launcher up --set a=b", Line(["up", "--set"], "a=b")),
    ],
)
def test_zsh_and_fish_tell_the_whole_line(shell: str, text: str, expected: Line):
    assert line(shell, {"_TYPER_COMPLETE_ARGS": text}) == expected


def test_each_shell_is_answered_in_its_way():
    fish = {"_TYPER_COMPLETE_FISH_ACTION": "is-args"}
    assert answer("bash", {}, ["a", "b"]) == ("a\nb", 0)
    assert answer("zsh", {}, ["a:b"]) == ("_arguments '*: :((\"a\\\\:b\"))'", 0)
    assert answer("zsh", {}, []) == ("_files", 0)
    assert answer("fish", fish, []) == ("", 1)
    assert answer("fish", fish, ["a"]) == ("", 0)
    assert answer("fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}, ["a"]) == ("a", 0)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_itself_completes_by_the_script_that_is_installed(cache: Path, tmp_path: Path):
    script = get_completion_script(prog_name="launcher", complete_var="_LAUNCHER_COMPLETE", shell="bash")
    program = tmp_path / "launcher"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m launcher\n')
    program.chmod(0o755)
    asking = f"{script}\nCOMP_WORDS=(launcher plan demo --set proxy.failure_policy = r) COMP_CWORD=6\n"
    done = subprocess.run(
        ["bash", "--norc", "-c", f'{asking}_launcher_completion "{program}"; echo "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "DUET_CACHE": str(cache)},
    )
    assert (done.stdout, done.stderr) == ("retry\n", "")
