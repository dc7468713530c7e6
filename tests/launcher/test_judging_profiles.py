"""The verbs that judge and show profiles, as a user runs them."""

import json

import pytest
from typer.testing import CliRunner, Result

from launcher.cli import app
from tests.launcher.builders import model_folder, write

STATIC = ("--layer", "static")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200"})


@pytest.fixture
def profile(tmp_path):
    """One error and one warning of the static layer."""
    folder = model_folder(tmp_path / "model")
    text = f"""\
        extends: demo
        model: {{bundled: null, path: {folder}}}
        roles:
          decode:
            block_size: 48
            env: {{VLLM_LOGING_LEVEL: DEBUG}}
    """
    return str(write(tmp_path, text))


def test_a_profile_that_is_fine_passes():
    done = run("check", "demo", *STATIC)
    assert done.exit_code == 0
    assert "demo: nothing found (rules asked: static)" in done.stdout


def test_findings_name_key_place_reason_fix_rule_and_source(profile):
    done = run("check", profile, *STATIC)
    assert done.exit_code == 4
    assert f"error  roles.decode.block_size  ({profile}:5)" in done.stdout
    for line in ("what 48 is no multiple of 32", "fix  choose 32, 64 or 128", "rule cpu/block-size (vLLM 0.32:"):
        assert line in done.stdout
    assert f"warning  roles.decode.env.VLLM_LOGING_LEVEL  ({profile}:6)" in done.stdout
    assert "did you mean VLLM_LOGGING_LEVEL?" in done.stdout
    assert f"{profile}: 1 error and 1 warning" in done.stdout


def test_warnings_alone_are_no_failure(profile):
    assert run("check", profile, *STATIC, "--set", "roles.decode.block_size=64").exit_code == 0


def test_programs_read_the_same(profile):
    done = run("check", profile, "demo", *STATIC, "--output", "json")
    assert done.exit_code == 4
    told = json.loads(done.stdout)
    assert told["demo"] == {"ok": True, "findings": [], "layers": ["static"], "not_judged": told["demo"]["not_judged"]}
    assert not told[profile]["ok"]
    error = next(each for each in told[profile]["findings"] if each["severity"] == "error")
    assert error == {
        "rule": "cpu/block-size",
        "layer": "static",
        "severity": "error",
        "key": "roles.decode.block_size",
        "place": f"{profile}:5",
        "what": "48 is no multiple of 32",
        "why": "",
        "fix": "choose 32, 64 or 128",
        "values": {"block_size": "48"},
        "source": "vLLM 0.32: the CPU's attention kernels; with latent attention it chooses 16 by itself",
    }


def test_a_faulty_profile_outweighs_one_that_would_not_run(profile, tmp_path):
    faulty = str(write(tmp_path, "extends: demo\ndevise: cpu\n", "faulty.yaml"))
    done = run("check", faulty, profile, *STATIC)
    assert done.exit_code == 3
    assert f"error: {faulty}:2: devise: unknown key, did you mean device?" in done.stdout
    assert "roles.decode.block_size" in done.stdout
    told = json.loads(run("check", faulty, *STATIC, "--output", "json").stdout)
    assert told[faulty]["findings"][0]["rule"] == "profile/valid"


def test_what_cannot_become_a_plan_is_a_finding(tmp_path):
    done = run("check", "api-throughput", *STATIC, "--set", "roles.decode.devices=[0]", "--output", "json")
    assert done.exit_code == 4
    (finding,) = json.loads(done.stdout)["api-throughput"]["findings"]
    assert (finding["rule"], finding["key"]) == ("plan/possible", "roles.decode.devices")


def test_values_are_shown_with_their_places(profile):
    told = {
        each["key"]: each
        for each in json.loads(run("show", profile, "--set", "proxy.port=9", "--output", "json").stdout)
    }
    assert told["roles.decode.block_size"] == {"key": "roles.decode.block_size", "value": 48, "from": f"{profile}:5"}
    assert told["proxy.port"]["from"] == "--set proxy.port=9"
    assert told["proxy.host"]["from"] == "default"
    assert told["device"]["from"].endswith("profiles/demo.yaml:2")
    assert "model.bundled" not in told
    text = run("show", profile).stdout
    assert "roles.decode.block_size" in text
    assert "KEY" in text


def test_the_rules_are_listed():
    told = json.loads(run("rules", "--output", "json").stdout)
    assert {"cpu/block-size", "engine/configuration", "memory/weights", "host/driver"} <= {
        each["name"] for each in told
    }
    assert "cpu/block-size" in run("rules").stdout


def test_the_schema_is_printed():
    assert json.loads(run("schema").stdout)["title"] == "A Duet profile"
    assert run("schema", "--as", "markdown").stdout.startswith("# Profiles: every key")
