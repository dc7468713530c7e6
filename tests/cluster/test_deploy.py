"""The launcher's verbs for a cluster, on a real one."""

import json
import os
import subprocess
import sys

import pytest
import yaml

from tests.cluster.conftest import PROFILE
from tests.cluster.site import PROGRAMS, REPOSITORY


@pytest.fixture
def launch(site, namespace, tmp_path):
    """Runs the launcher in the namespace, with scripted engines for engines, until it ends."""
    profile, values = tmp_path / "fakes.yaml", tmp_path / "values.json"
    profile.write_text(PROFILE + yaml.safe_dump({"engine_command": [site.python, "-m", "tests.fakes.engine"]}))
    values.write_text(json.dumps({**site.values(), "model": {"inImage": True}}))

    def launch(*arguments, helm="helm3"):
        programs = tmp_path / helm
        programs.mkdir(exist_ok=True)
        if not (programs / "helm").exists():
            (programs / "helm").symlink_to(PROGRAMS / helm)
        if arguments[0] == "deploy":
            arguments = ("deploy", str(profile), "--release", "pd", "--values", str(values), *arguments[1:])
        return subprocess.run(
            [sys.executable, "-P", "-m", "launcher", *arguments, "--namespace", namespace],
            env=os.environ | {"PYTHONPATH": str(REPOSITORY), "PATH": f"{programs}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )

    return launch


def test_a_profile_is_deployed_upgraded_in_vain_rolled_back_and_taken_away(launch, site, namespace):
    done = launch("deploy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"pd serves; how to ask it: helm get notes pd --namespace {namespace}\n")
    assert launch("status", "--cluster").returncode == 0
    assert launch("deploy", "--dry-run").stdout == "nothing changes\n"

    missing = ("--helm-set", "decode.image.repository=localhost/nothing", "--helm-set", "decode.image.tag=v1")
    done = launch("deploy", *missing)
    assert done.returncode == 7, done.stdout + done.stderr
    assert "+          image: localhost/nothing:v1" in done.stdout
    assert "the image localhost/nothing:v1 cannot be had" in done.stderr
    done = launch("status", "--cluster")
    assert (done.returncode, "localhost/nothing:v1" in done.stdout) == (1, True)

    done = launch("rollback", "pd")
    assert done.returncode == 0, done.stdout + done.stderr
    done = launch("undeploy", "pd")
    assert done.returncode == 0, done.stdout + done.stderr
    assert site.get("pods", "--namespace", namespace)["items"] == []
    assert launch("undeploy", "pd").returncode == 4


def test_an_engine_that_ends_is_explained_by_its_log(launch, site, tmp_path):
    variables = site.values(env={"FAKE_ENGINE_CRASH_AT_START": "ValueError: No available memory for the cache blocks."})
    file = tmp_path / "crash.json"
    file.write_text(json.dumps({"decode": {"extraEnv": variables["engine"]["extraEnv"]}}))
    done = launch("deploy", "--values", str(file), helm="helm4")
    assert done.returncode == 7, done.stdout + done.stderr
    assert "  | ValueError: No available memory for the cache blocks.\n" in done.stderr
    assert "Likely: the KV cache is too small" in done.stderr
