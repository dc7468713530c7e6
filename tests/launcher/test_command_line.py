"""The command line, as a user meets it."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.loader import shipped_profiles

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def launch(tmp_path):
    """Runs the launcher as a program, in an empty folder."""

    def launch(*arguments, run_dir=tmp_path / "run"):
        environ = {name: value for name, value in os.environ.items() if not name.startswith("DUET_")}
        return subprocess.run(
            [sys.executable, "-P", "-m", "launcher", *arguments],
            env=environ | {"PYTHONPATH": str(ROOT), "DUET_RUN_DIR": str(run_dir), "COLUMNS": "200", "NO_COLOR": "1"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return launch


def test_list_shows_what_ships(launch):
    done = launch("list")
    assert done.returncode == 0
    for name in shipped_profiles():
        assert name in done.stdout


def test_list_is_readable_for_programs(launch):
    rows = {row["name"]: row for row in json.loads(launch("list", "--output", "json").stdout)}
    assert set(rows) == set(shipped_profiles())
    assert rows["demo"]["techniques"] == ["PD"]
    assert rows["interactive"]["techniques"] == ["INT8", "speculation (eagle3)"]
    assert rows["batch-cost"]["techniques"] == ["INT4", "PD"]
    assert rows["demo"]["device"] == "cpu"


def test_plan_warns_of_what_would_run_and_yet_is_no_use(launch):
    done = launch("plan", "demo", "--set", "proxy.pd.shorter_than=999999", "--output", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)
    assert done.stderr.startswith("warning: proxy.pd.shorter_than: 999999 turns PD off for every request")


def test_plan_as_text_can_be_pasted_into_a_shell(launch, tmp_path):
    done = launch("plan", "demo")
    assert done.returncode == 0
    engine = json.loads(launch("plan", "demo", "--output", "json").stdout)["engines"][1]
    block = next(block for block in done.stdout.split("\n\n") if block.startswith("decode-0:"))
    headline, _, command = block.partition("\n")
    assert headline.startswith(f"decode-0: http://127.0.0.1:{engine['port']} (decode")
    environment = [f"{name}={value}" for name, value in engine["env"].items()]
    assert shlex.split(command.replace("\\\n", " ")) == [*environment, *engine["argv"]]
    assert not (tmp_path / "run").exists()


def test_plan_as_json_is_the_plan(launch, tmp_path):
    made = json.loads(launch("plan", "demo", "--set", "proxy.port=9001", "--output", "json").stdout)
    assert made["proxy"]["port"] == 9001
    assert made["files"][0]["path"] == str(tmp_path / "run" / "proxy.json")


@pytest.mark.parametrize("profile", ["demo", "interactive"])
def test_another_model_replaces_that_of_the_profile(launch, tmp_path, profile):
    made = json.loads(launch("plan", profile, "--model", "a model", "--output", "json").stdout)
    assert made["model"] == str(tmp_path / "a model")


def test_a_profile_of_ones_own_has_the_name_of_its_file(launch, tmp_path):
    (tmp_path / "mine.yaml").write_text("extends: demo\ndescription: mine\n")
    assert json.loads(launch("plan", "mine.yaml", "--output", "json").stdout)["profile"] == "mine"


def test_status_of_nothing_is_not_healthy(launch, tmp_path):
    done = launch("status")
    assert (done.returncode, done.stdout) == (1, f"nothing runs in {tmp_path / 'run'}\n")


def test_status_is_readable_for_programs(launch):
    done = launch("status", "--output", "json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert (report["healthy"], report["instances"], report["launcher_pid"]) == (False, [], None)


def test_logs_of_nothing_are_an_error(launch, tmp_path):
    done = launch("logs")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"error: there are no logs: nothing has run in {tmp_path / 'run'} yet\n"


def test_logs_carry_their_instance(launch, tmp_path):
    (tmp_path / "run" / "logs").mkdir(parents=True)
    (tmp_path / "run" / "logs" / "decode-0.log").write_text("one\ntwo\n")
    assert launch("logs", "-n", "1").stdout == "decode-0     | two\n"
    assert json.loads(launch("logs", "-n", "1", "--output", "json").stdout) == {"instance": "decode-0", "line": "two"}


def test_down_with_nothing_to_stop_succeeds(launch, tmp_path):
    done = launch("down")
    assert (done.returncode, done.stdout) == (0, f"nothing runs in {tmp_path / 'run'}\n")


@pytest.mark.parametrize("verb", [("plan",), ("up",), ("up", "--detach")])
def test_an_unknown_profile_suggests_the_nearest_and_shows_no_traceback(launch, verb):
    done = launch(*verb, "dmeo")
    assert done.returncode == 3
    assert done.stderr.startswith("error: unknown profile dmeo; did you mean demo?")
    assert "Traceback" not in done.stderr


def test_a_plan_that_is_impossible_has_its_own_code(launch):
    done = launch("plan", "demo", "--set", "ports.engine=65535")
    assert (done.returncode, "Traceback" in done.stderr) == (4, False)


@pytest.mark.parametrize(
    "arguments",
    [["plan"], ["plan", "demo", "--nonsense"], ["list", "--output", "yaml"], ["fly"], ["logs", "-n", "-1"]],
)
def test_a_wrong_command_line_has_code_2(launch, arguments):
    done = launch(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_help_explains_the_exit_codes(launch):
    done = launch("--help")
    assert done.returncode == 0
    assert "Exit codes" in done.stdout
    for code in (0, 1, 2, 3, 4, 5, 6, 8, 130):
        assert f" {code} " in done.stdout.partition("Exit codes")[2]
