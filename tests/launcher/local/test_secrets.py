"""Secrets come from where the plan says they are, when an engine starts, and are nowhere else."""

from pathlib import Path

import psutil
import pytest

from launcher.errors import SecretError
from launcher.local.secrets import check, reader
from tests.launcher.local.conftest import Launch

SECRET = "hf_very-secret"


def test_a_secret_comes_from_a_variable_or_a_file(tmp_path: Path):
    (tmp_path / "key").write_text(f"{SECRET}\n")
    read = reader({"HF_TOKEN": {"file": str(tmp_path / "key")}, "VLLM_API_KEY": {"env": "KEY"}}, {"KEY": "of a vault"})
    assert read() == {"HF_TOKEN": SECRET, "VLLM_API_KEY": "of a vault"}


def test_it_is_read_anew_at_every_start(tmp_path: Path):
    (tmp_path / "key").write_text("old")
    read = reader({"HF_TOKEN": {"file": str(tmp_path / "key")}}, {})
    assert read() == {"HF_TOKEN": "old"}
    (tmp_path / "key").write_text("new")
    assert read() == {"HF_TOKEN": "new"}


def test_only_the_last_line_end_is_no_part_of_it(tmp_path: Path):
    (tmp_path / "key").write_bytes(b" two\nlines \r\n")
    assert reader({"KEY": {"file": str(tmp_path / "key")}}, {})() == {"KEY": " two\nlines "}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is not there or empty"),
        (b"\n", "is not there or empty"),
        (b"a\0b", "has a zero byte"),
        (b"\xff\xfe", "cannot be read: it is no text"),
    ],
)
def test_a_file_that_has_none_is_named_with_the_variable_and_the_fix(tmp_path: Path, content, fault: str):
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SecretError) as caught:
        check([("decode-0", {"HF_TOKEN": {"file": str(path)}})], {})
    assert caught.value.exit_code == 4
    message = str(caught.value)
    for part in ("secret HF_TOKEN", str(path), fault, "write the secret into", "(for decode-0)"):
        assert part in message


def test_all_that_is_missing_is_told_at_once_and_each_once(tmp_path: Path):
    references = {"HF_TOKEN": {"env": "TOKEN"}, "KEY": {"file": str(tmp_path / "none")}}
    with pytest.raises(SecretError) as caught:
        check([("prefill-0", references), ("decode-0", references)], {"TOKEN": ""})
    assert len(caught.value.messages) == 2
    assert caught.value.messages[0] == (
        "secret HF_TOKEN: the variable TOKEN is not there or empty: set it where you start from "
        "(for prefill-0, decode-0)"
    )


def test_engines_have_it_and_nothing_that_is_written_does(launch: Launch, folder: Path):
    (folder / "key").write_text(f"{SECRET}\n")
    running = launch("--set", f'secrets={{HF_TOKEN: {{file: "{folder / "key"}"}}}}')
    running.wait_ready()
    for name in ("prefill-0", "decode-0"):
        assert psutil.Process(running.instance(name)["pid"]).environ()["HF_TOKEN"] == SECRET
    assert "HF_TOKEN" not in psutil.Process(running.instance("proxy")["pid"]).environ()
    written = [file for file in (folder / "run").rglob("*") if file.is_file()]
    assert len(written) >= 6
    assert not [file for file in written if SECRET in file.read_text()]
    assert SECRET not in running.output
    assert not [process for process in running.family() if SECRET in " ".join(process.cmdline())]


def test_nothing_starts_without_it(launch: Launch, folder: Path):
    running = launch("--set", "secrets={HF_TOKEN: {env: DUET_TEST_TOKEN}}")
    assert running.result() == 4
    assert "error: secret HF_TOKEN: the variable DUET_TEST_TOKEN is not there or empty" in running.output
    assert running.state() == {}


def test_one_that_is_gone_when_an_engine_starts_again_is_told_and_tried_again(launch: Launch, command, folder: Path):
    key = folder / "key"
    key.write_text(SECRET)
    running = launch("--set", f'roles.prefill.secrets={{HF_TOKEN: {{file: "{key}"}}}}')
    running.wait_ready()
    key.unlink()
    refused = command("restart", "prefill-0")
    assert refused.returncode == 4
    assert f"secret HF_TOKEN: the file {key} cannot be read" in refused.stderr
    key.write_text("another")
    running.wait(lambda: running.instance("prefill-0")["state"] == "ready")
    assert psutil.Process(running.instance("prefill-0")["pid"]).environ()["HF_TOKEN"] == "another"
