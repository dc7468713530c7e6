"""Reading logs, also while they grow and rotate."""

from itertools import islice

import pytest

from launcher.errors import RunDirectoryError
from launcher.local import logs
from launcher.local.logs import LogLine
from launcher.local.run_directory import RunDirectory


@pytest.fixture
def directory(tmp_path):
    made = RunDirectory(tmp_path)
    made.create()
    return made


def add(directory, instance, data):
    with directory.log(instance).open("ab") as file:
        file.write(data)


def read(directory, instance=None, lines=10):
    return [*logs.read(directory, instance, lines, follow=False)]


def rotate(directory, instance):
    log = directory.log(instance)
    log.rename(log.with_name(log.name + ".1"))


@pytest.fixture
def follow(directory):
    """Follows ``decode-0`` from its end; the function waits for so many new lines."""
    add(directory, "decode-0", b"old\n")
    stream = logs.read(directory, "decode-0", 1, follow=True)
    assert next(stream) == LogLine("decode-0", "old")
    return lambda count: [line.text for line in islice(stream, count)]


def test_the_last_lines_of_every_instance_are_read(directory):
    add(directory, "prefill-0", b"a\nb\nc\n")
    add(directory, "decode-0", b"d\n")
    assert read(directory, lines=2) == [LogLine("decode-0", "d"), LogLine("prefill-0", "b"), LogLine("prefill-0", "c")]


def test_one_instance_is_read(directory):
    add(directory, "prefill-0", b"a\n")
    add(directory, "decode-0", b"b\n")
    assert read(directory, "decode-0") == [LogLine("decode-0", "b")]


def test_no_lines_may_be_asked_for(directory):
    add(directory, "decode-0", b"a\n")
    assert read(directory, lines=0) == []


def test_what_is_not_utf_8_is_replaced(directory):
    add(directory, "decode-0", b"\xff\n")
    assert read(directory) == [LogLine("decode-0", "�")]


def test_an_unknown_instance_names_the_known(directory):
    add(directory, "decode-0", b"")
    add(directory, "prefill-0", b"")
    with pytest.raises(RunDirectoryError, match="there is no log of decode: there are decode-0, prefill-0"):
        read(directory, "decode")


@pytest.mark.parametrize("instance", [None, "decode-0"])
def test_no_logs_mean_that_nothing_has_run(directory, instance):
    with pytest.raises(RunDirectoryError, match="nothing has run in"):
        read(directory, instance)


def test_new_lines_follow(directory, follow):
    add(directory, "decode-0", b"one\ntwo\n")
    assert follow(2) == ["one", "two"]
    add(directory, "decode-0", b"three\n")
    assert follow(1) == ["three"]


def test_a_line_follows_once_it_is_whole(directory, follow):
    add(directory, "decode-0", b"one\ntw")
    assert follow(1) == ["one"]
    add(directory, "decode-0", b"o\nthree\n")
    assert follow(2) == ["two", "three"]


def test_empty_lines_do_not_hold_up_what_follows(directory, follow):
    add(directory, "decode-0", b"\n")
    add(directory, "decode-0", b"\none\n")
    assert follow(1) == ["one"]


def test_following_goes_on_in_the_new_file_after_a_rotation(directory, follow):
    rotate(directory, "decode-0")
    add(directory, "decode-0", b"a new and longer line\n")
    assert follow(1) == ["a new and longer line"]


def test_lines_just_before_a_rotation_are_not_lost(directory, follow):
    add(directory, "decode-0", b"one\n")
    assert follow(1) == ["one"]
    add(directory, "decode-0", b"last of the old file\n")
    rotate(directory, "decode-0")
    add(directory, "decode-0", b"first of the new file\n")
    assert follow(1) == ["last of the old file"]
    assert follow(1) == ["first of the new file"]


def test_a_new_instance_is_followed_from_its_beginning(directory):
    add(directory, "decode-0", b"old\n")
    stream = logs.read(directory, None, 1, follow=True)
    assert next(stream).text == "old"
    add(directory, "prefill-0", b"hello\n")
    assert next(stream) == LogLine("prefill-0", "hello")
