"""Secrets come from where the plan says they are, when an engine starts, and are nowhere else."""

from pathlib import Path

import pytest

from launcher.errors import SecretError
from launcher.local.secrets import check, reader

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
