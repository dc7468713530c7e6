"""Files for other programs: all or none, and nothing that is somebody else's."""

import os
from pathlib import Path

import pytest

from launcher.errors import RunDirectoryError
from launcher.plan import PlannedFile
from launcher.rendered import write


def files(folder: Path, **contents: str) -> list[PlannedFile]:
    return [PlannedFile(str(folder / name), content) for name, content in contents.items()]


def test_what_it_has_written_it_writes_again(tmp_path: Path):
    folder = tmp_path / "new" / "folder"
    assert write(folder, files(folder, a="1", b="2")) == []
    assert write(folder, files(folder, a="3", b="2")) == []
    assert {file.name: file.read_text() for file in folder.glob("[ab]")} == {"a": "3", "b": "2"}
    assert sorted(file.name for file in folder.iterdir()) == [".duet-rendered.json", "a", "b"]


@pytest.mark.parametrize("first", [None, "1"])
def test_somebody_else_s_file_and_a_changed_one_are_left_alone_without_force(tmp_path: Path, first: str | None):
    if first is not None:
        write(tmp_path, files(tmp_path, a=first))
    (tmp_path / "a").write_text("mine")
    with pytest.raises(RunDirectoryError) as caught:
        write(tmp_path, files(tmp_path, b="2", a="2"))
    assert str(tmp_path / "a") in str(caught.value)
    assert "--force" in str(caught.value)
    assert not (tmp_path / "b").exists()
    write(tmp_path, files(tmp_path, b="2", a="2"), force=True)
    assert (tmp_path / "a").read_text() == "2"
    write(tmp_path, files(tmp_path, b="2", a="3"))


def test_a_file_that_is_the_same_already_is_nobody_s_loss(tmp_path: Path):
    (tmp_path / "a").write_text("1")
    write(tmp_path, files(tmp_path, a="1"))
    write(tmp_path, files(tmp_path, a="2"))


def test_what_is_no_longer_wanted_is_named_until_it_is_gone(tmp_path: Path):
    write(tmp_path, files(tmp_path, a="1", b="2"))
    assert write(tmp_path, files(tmp_path, a="1")) == [tmp_path / "b"]
    assert write(tmp_path, files(tmp_path, a="1")) == [tmp_path / "b"]
    (tmp_path / "b").unlink()
    assert write(tmp_path, files(tmp_path, a="1")) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match="choose another --out"):
        write(tmp_path / "file", files(tmp_path / "file", a="1"))


def test_a_broken_manifest_is_as_none(tmp_path: Path):
    (tmp_path / ".duet-rendered.json").write_text("[]")
    write(tmp_path, files(tmp_path, a="1"))
    assert (tmp_path / "a").read_text() == "1"


@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_ordinary_file_is_neither_read_nor_replaced(tmp_path: Path, force: bool):
    os.mkfifo(tmp_path / "a")  # who reads it waits for ever; a device may never end
    with pytest.raises(RunDirectoryError, match="a: no ordinary file; choose another --out"):
        write(tmp_path, files(tmp_path, a="1"), force=force)
    assert (tmp_path / "a").is_fifo()
