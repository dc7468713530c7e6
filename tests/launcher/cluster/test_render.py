"""`launcher render`, of values for the chart."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from launcher.cli import app
from launcher.cluster.names import is_release

PROFILE = """\
description: Two engines
device: cpu
model: {id: some/model, served_name: some}
roles:
  prefill: {kv_cache_memory: 1GiB, cores: 1}
  decode: {kv_cache_memory: 1GiB, cores: 1}
"""


@pytest.mark.parametrize("name", ["My.Profile_x", "a b", "größe – 日本", "日本", "7b"])
def test_the_release_that_it_names_is_one_that_helm_takes(tmp_path: Path, name: str):
    (tmp_path / f"{name}.yaml").write_text(PROFILE)
    done = CliRunner().invoke(app, ["render", str(tmp_path / f"{name}.yaml"), "--out", str(tmp_path / "values.yaml")])
    assert done.exit_code == 0, done.output
    command = done.stdout.splitlines()[-1].split()
    assert command[:2] == ["helm", "install"]
    assert command[3] == "./helm", "the name is one word"
    assert is_release(command[2])
