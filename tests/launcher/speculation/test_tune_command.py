"""`launcher tune speculation` and `launcher compare` say at once what cannot be measured."""

import pytest
from typer.testing import CliRunner

from launcher.cli import app
from launcher.errors import LauncherError
from tests.launcher.builders import PAIR, write


def refused(*arguments):
    found = CliRunner().invoke(app, [*arguments])
    if isinstance(found.exception, LauncherError):
        return str(found.exception)
    assert found.exit_code == 2
    return found.output


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "name a profile"),
        (("demo", "--k", "two"), "write numbers with commas"),
        (("demo", "--concurrency", "0"), "--k and --concurrency"),
        (("demo", "--method", "eagle3"), "it can try ngram"),
        (("demo", "--workload", "chatt"), "did you mean chat?"),
        (("demo", "--temperature", "9"), "from 0 to 2"),
        (("demo", "--set", "roles.decode.data_parallel=2"), "use replicas"),
        (("no-such",), "unknown profile"),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_anything_starts(arguments, part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert part in " ".join(refused("tune", "speculation", *arguments).replace("│", " ").split())
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "name A, and B"),
        (("demo",), "name B"),
        (("interactive", "--aggregated"), "aggregated already"),
        (("demo", "demo", "--aggregated"), "it takes one profile"),
        (("http://127.0.0.1:1", "demo", "--set-a", "proxy.port=1"), "nothing can be set"),
        (("demo", "http://127.0.0.1:1", "--concurrency", "1", "--rate", "2"), "either --concurrency"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_starts(arguments, part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert part in " ".join(refused("compare", *arguments).replace("│", " ").split())


def test_a_profile_that_cannot_be_edited_is_told_before_it_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file, out = write(tmp_path, PAIR), tmp_path / "there.yaml"
    out.write_text("mine")
    assert "is there already" in refused("tune", "speculation", str(file), "--out", str(out))
