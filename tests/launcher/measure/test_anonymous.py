"""Records lose their words and load a server as before."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.errors import MeasureError
from launcher.measure.anonymise import anonymise
from launcher.measure.anonymous import Anonymiser, anonymous
from launcher.measure.records import requests_of

SYSTEM = "You are the assistant of Contoso Bank. Never tell account 4711 to Smith."
RECORDS = [
    {
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Where is my money, Smith?"}],
        "temperature": 0.3,
        "user": "alice@example.org",
        "stop": ["Smith"],
        "timestamp": "2026-01-02T10:00:00Z",
        "answer": "Contoso has it",
    },
    {
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": [{"type": "text", "text": "money money MONEY Money"}]},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "transfer_money",
                    "description": "Move money of Smith",
                    "parameters": {"type": "object", "properties": {"recipient": {"type": "string"}}},
                },
            }
        ],
        "timestamp": "2026-01-02T10:00:05Z",
        "metadata": {"customer": "Smith"},
    },
    {
        "prompt": "私の口座 Überweisung naïve 3.14",
        "timestamp": "2026-01-02T10:00:09Z",
        "max_tokens": 5,
        "stop": ["Smith"],
    },
]


def made(records: list[dict] = RECORDS, seed: int = 0) -> list[dict[str, Any]]:
    requests = requests_of(map(json.dumps, records), "real.jsonl", 64)
    return [*anonymous(requests, Random(seed))]


def test_no_word_of_three_letters_or_more_survives():
    text = json.dumps(made(), ensure_ascii=False).casefold()
    words = "you assistant contoso bank never tell account smith where money alice example transfer recipient customer"
    for word in f"{words} move überweisung naïve 4711 口座".split():
        assert word not in text, word


def test_lengths_blanks_and_punctuation_stay():
    content = made()[0]["messages"][0]["content"]
    assert [len(each) for each in content.split(" ")] == [len(each) for each in SYSTEM.split(" ")]
    assert [each for each in content if each in " ."] == [each for each in SYSTEM if each in " ."]


def test_prefixes_are_shared_and_words_repeat_as_before():
    first, second, _ = made()
    assert first["messages"][0] == second["messages"][0]
    one, other, loud, title = second["messages"][1]["content"][0]["text"].split()
    assert one == other
    assert (loud, title) == (one.upper(), one.capitalize())
    assert one in first["messages"][1]["content"]


def test_what_loads_a_server_stays_and_what_names_somebody_goes():
    first, second, third = made()
    assert [each["at"] for each in (first, second, third)] == [0, 5, 9]
    assert (first["temperature"], first["max_tokens"], third["max_tokens"]) == (0.3, 64, 5)
    assert not {"user", "metadata", "timestamp"} & (first.keys() | second.keys() | third.keys())
    assert second["tools"][0]["type"] == "function"
    assert second["tools"][0]["function"]["parameters"]["type"] == "object"
    assert first["answer"].split()[0] == first["messages"][0]["content"].split()[5]


def test_another_run_makes_other_words():
    assert made(seed=1) != made(seed=2)


def test_what_was_made_can_be_sent(tmp_path: Path):
    source, target = tmp_path / "real.jsonl", tmp_path / "made.jsonl"
    source.write_text("\n".join(map(json.dumps, RECORDS)))
    assert anonymise(source, target, 64) == 3
    requests = requests_of(target.read_text().splitlines(), "made.jsonl", 64)
    assert [each.at for each in requests] == [0, 5, 9]
    with pytest.raises(MeasureError, match="exists already"):
        anonymise(source, target, 64)


@pytest.mark.parametrize(
    "record",
    [
        {"prompt": [1, 2, 3]},
        {"prompt": [[1, 2]]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}]},
    ],
)
def test_what_has_no_words_is_refused(record: dict):
    with pytest.raises(MeasureError, match=r"request 1 has .* cannot be made anonymous"):
        made([record])


@given(
    st.lists(st.text(alphabet="abcdefghxy ABXYé", min_size=1, max_size=60), min_size=1, max_size=5), st.integers(0, 99)
)
def test_texts_keep_their_structure(texts: list[str], seed: int):
    anonymiser = Anonymiser(Random(seed))
    after = [anonymiser.text(each) for each in texts]
    assert [len(each) for each in after] == [len(each) for each in texts]
    before_words, after_words = " ".join(texts).split(), " ".join(after).split()
    assert len(before_words) == len(after_words)
    pairs = {(one, other) for one, other in zip(before_words, after_words, strict=True)}
    assert len(pairs) == len(set(before_words))
    assert all(one != other for one, other in pairs)
    long = [each for each in before_words if len(each) > 2]
    assert sorted(Counter(long).values()) == sorted(
        Counter(other for one, other in zip(before_words, after_words, strict=True) if len(one) > 2).values()
    )
