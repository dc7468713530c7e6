"""`launcher render`, the command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launcher.local.deployments import REPOSITORY


@pytest.fixture
def render(profile: Path, folder: Path):
    """Run it on the profile of two fakes."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-P", "-m", "launcher", "render", str(profile), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )

    return run


def test_it_writes_units_and_says_what_to_do(render, folder: Path):
    done = render("--to", "systemd")
    assert done.returncode == 0, done.stderr
    out = folder / "duet-fakes"
    assert sorted(file.name for file in out.iterdir() if not file.name.startswith(".")) == [
        "about.json",
        "duet-fakes-decode-0.service",
        "duet-fakes-prefill-0.service",
        "duet-fakes-proxy.service",
        "duet-fakes.target",
        "proxy.json",
    ]
    assert f"wrote '{out / 'duet-fakes.target'}'" in done.stdout
    assert "systemctl --user enable --now duet-fakes.target" in done.stdout
    assert str(out / "proxy.json") in (out / "duet-fakes-proxy.service").read_text()


def test_it_refuses_what_it_has_not_written(render, folder: Path):
    (folder / "out").mkdir()
    (folder / "out" / "duet-fakes.target").write_text("mine")
    refused = render("--to", "systemd", "--out", "out")
    assert refused.returncode == 4
    assert "--force" in refused.stderr
    assert render("--to", "systemd", "--out", "out", "--force").returncode == 0
    assert render("--to", "systemd", "--out", "out", "--set", "startup_timeout=99").returncode == 0


def test_a_profile_that_would_not_run_is_not_written(render, folder: Path):
    refused = render("--to", "systemd", "--set", "roles.decode.block_size=16", "--set", "roles.prefill.block_size=32")
    assert refused.returncode == 4
    assert "block size" in refused.stderr
    assert not (folder / "duet-fakes").exists()


def test_an_unknown_format_is_named_with_those_there_are(render):
    refused = render("--to", "runit")
    assert refused.returncode == 2
    assert "systemd" in refused.stderr
