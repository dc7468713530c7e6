"""Records are drawn from a file of any size; what is wrong with it is told by line."""

import json
import random
from pathlib import Path

import pytest

from launcher.quantize.worker.duet_quantizing import drawing
from launcher.quantize.worker.duet_quantizing.drawing import draw
from launcher.quantize.worker.duet_quantizing.telling import RefusedError
from tests.launcher.quantize.worker.records import Heard, chat, sentences, write


def drawn(path: Path, count: int = 1000, seed: int = 0):
    return draw(str(path), count, seed, Heard())


def test_a_small_file_is_drawn_whole(tmp_path: Path):
    texts = sentences(50)
    found = drawn(write(tmp_path / "f", [{"text": text} for text in texts]))
    assert sorted(record.text for record in found.records) == sorted(texts)
    assert found.facts == {"read": 50, "unreadable": 0, "faults": [], "empty": 0, "duplicates": 0}


def test_the_same_seed_draws_the_same_records_whatever_the_order_of_lines(tmp_path: Path):
    lines = [chat(text, "yes") for text in sentences(300)]
    one = drawn(write(tmp_path / "one", lines), 20)
    random.Random(1).shuffle(lines)
    other = drawn(write(tmp_path / "other", lines), 20)
    assert [record.messages for record in one.records] == [record.messages for record in other.records]


def test_another_seed_draws_others(tmp_path: Path):
    file = write(tmp_path / "f", [{"text": text} for text in sentences(300)])
    one, other = ({record.line for record in drawn(file, 20, seed).records} for seed in (0, 1))
    assert len(one & other) < 10


def test_every_record_is_drawn_as_often(tmp_path: Path):
    file = write(tmp_path / "f", [{"text": text} for text in sentences(20)])
    times = [record.line for seed in range(400) for record in drawn(file, 5, seed).records]
    assert all(60 <= times.count(line) <= 140 for line in range(1, 21))  # 100 expected, sd 8.7


def test_duplicates_are_drawn_once_and_counted_also_outside_the_draw(tmp_path: Path):
    texts = sentences(100)
    repeated = [chat(text, "a", id=number) for number, text in enumerate(texts + texts[:60] + texts[:1])]
    found = drawn(write(tmp_path / "f", repeated), 10)
    assert len({str(record.messages) for record in found.records}) == 10
    assert found.duplicates == 61


def test_unreadable_lines_are_told_by_number_and_without_their_text(tmp_path: Path):
    good = [{"text": text} for text in sentences(100)]
    bad = [
        '{"text": "my secret',
        "[1]",
        '{"answer": 3}',
        '{"messages": []}',
        chat("x") | {"messages": [{"content": "x"}]},
    ]
    found = drawn(write(tmp_path / "f", ["", *bad, *good, '{"messages": "hello"}']))
    assert found.unreadable == 6
    assert found.faults == [
        {"line": 2, "why": "not JSON: Unterminated string starting at column 10"},
        {"line": 3, "why": "not a JSON object"},
        {"line": 4, "why": "has none of: messages, text, prompt"},
        {"line": 5, "why": "messages is no list of messages"},
        {"line": 6, "why": "message 1 has no role"},
    ]
    assert "secret" not in json.dumps(found.facts)


def test_what_no_tokenizer_or_template_takes_is_an_unreadable_line(tmp_path: Path):
    good = [{"text": text} for text in sentences(100)]
    half = r'{"text": "half a pair \ud83d"}'
    whole = r'{"text": "a whole pair \ud83d\ude00"}'
    found = drawn(write(tmp_path / "f", [half, whole, chat("x") | {"tools": 5}, *good]))
    assert found.faults == [
        {"line": 1, "why": "has half a surrogate pair, which is no text"},
        {"line": 3, "why": "tools is no list"},
    ]


def test_a_file_with_more_than_a_tenth_unreadable_lines_is_refused(tmp_path: Path):
    file = write(tmp_path / "f", ["what?", "who?", *({"text": text} for text in sentences(17))])
    with pytest.raises(
        RefusedError, match=r"2 of 19 lines cannot be read, more than 10 %: line 1 \(not JSON.*must be one"
    ):
        drawn(file)


def test_empty_records_are_left_out_and_counted(tmp_path: Path):
    file = write(tmp_path / "f", [{"text": " "}, chat("", ""), chat("hello", "you")])
    assert drawn(file).empty == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'[{"text": "a"},\n{"text": "b"}]', "is a JSON array; one record a line is needed: jq"),
        (b"\x1f\x8b\x08", "is compressed; unpack it first: gunzip"),
        (b"PAR1....", "is a Parquet file"),
        (b"", "has no records"),
        (b'{"text": ""}\n', "has no records"),
    ],
)
def test_what_is_no_file_of_records_is_refused_with_the_fix(tmp_path: Path, content: bytes, told: str):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(RefusedError, match=told):
        drawn(tmp_path / "f")


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(RefusedError, match=r"nowhere: cannot be read \(No such file or directory\)"):
        drawn(tmp_path / "nowhere")


def test_a_line_without_end_is_one_unreadable_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(drawing, "_LONGEST", 1000)
    lines = [{"text": text[:100]} for text in sentences(30)]
    found = drawn(write(tmp_path / "f", [*lines[:15], '{"text": "' + "x" * 5000, *lines[15:]]))
    assert (found.read, found.faults) == (31, [{"line": 16, "why": "longer than 16 MiB"}])
    assert found.records[-1].line <= 31


def test_progress_is_told_of_a_large_file(tmp_path: Path):
    heard = Heard()
    draw(str(write(tmp_path / "f", [{"text": "x" * 100_000 + str(n)} for n in range(100)])), 5, 0, heard)
    assert heard.told == [
        {"event": "progress", "title": "Read records (MB)", "done": 4, "of": 9},
        {"event": "progress", "title": "Read records (MB)", "done": 8, "of": 9},
    ]
