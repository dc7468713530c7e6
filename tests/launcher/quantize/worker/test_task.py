"""A labelled task is tokenized as the model is served; a bad line is refused by its number."""

import json
from pathlib import Path

import pytest

from launcher.quantize.worker.duet_quantizing.rendering import Renderer
from launcher.quantize.worker.duet_quantizing.task import read_task
from launcher.quantize.worker.duet_quantizing.telling import RefusedError
from tests.launcher.quantize.worker.records import write
from tests.launcher.quantize.worker.tokenizer import Words

CHOICE = {"prompt": "The sky is", "choices": ["blue", "a big fish"], "answer": 0}


def told(tmp_path: Path, *items: object, template: str | None = "one", max_tokens: int = 100):
    words = Words(template)
    task, left_out = read_task(str(write(tmp_path / "t", items)), Renderer(words), max_tokens)
    for item in task["items"]:
        item["ids"] = words.text(item["ids"])
        if "choices" in item:
            item["choices"] = [words.text(choice) for choice in item["choices"]]
    return task, left_out


def test_a_model_that_chats_is_asked_in_its_format(tmp_path: Path):
    asked = "<user>The sky is<end>\n<assistant>"
    messages = [{"role": "user", "content": "The sky is"}]
    task, _ = told(tmp_path, CHOICE, {**CHOICE, "messages": messages, "answer": 1})
    assert task == {
        "kind": "choice",
        "items": [
            {"ids": asked, "choices": ["blue", "a big fish"], "answer": 0},
            {"ids": asked, "choices": ["blue", "a big fish"], "answer": 1},
        ],
    }


def test_plain_text_goes_on_after_a_space(tmp_path: Path):
    task, _ = told(tmp_path, CHOICE, {**CHOICE, "prompt": "It: ", "choices": ["a", "b"]}, template=None)
    assert task["items"] == [
        {"ids": "<bos>The sky is", "choices": [" blue", " a big fish"], "answer": 0},
        {"ids": "<bos>It: ", "choices": ["a", "b"], "answer": 0},
    ]


def test_answers_may_be_text(tmp_path: Path):
    task, _ = told(tmp_path, {"prompt": "2+2=", "answer": "4"})
    assert task == {"kind": "exact", "items": [{"ids": "<user>2+2=<end>\n<assistant>", "answer": "4"}]}


def test_items_that_are_too_long_are_left_out_and_counted(tmp_path: Path):
    task, left_out = told(tmp_path, CHOICE, {**CHOICE, "prompt": "word " * 100}, max_tokens=50)
    assert (len(task["items"]), left_out) == (1, 1)
    with pytest.raises(RefusedError, match="every item is longer than 3 tokens"):
        told(tmp_path, CHOICE, max_tokens=3)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("what?", r"not JSON: Expecting value at column 1"),
        ("[]", "not a JSON object"),
        (json.dumps({"answer": "4"}), "has neither messages nor a prompt"),
        (json.dumps({"messages": [], "answer": "4"}), "messages is no list of messages"),
        (json.dumps({"messages": [{"role": "critic", "content": ""}], "answer": "4"}), "the chat template refuses it"),
        (json.dumps({"prompt": "x", "answer": 4}), "has no answer as text"),
        (json.dumps({**CHOICE, "choices": ["blue"]}), "choices is no list of at least two texts"),
        (json.dumps({**CHOICE, "choices": "blue"}), "choices is no list of at least two texts"),
        (json.dumps({**CHOICE, "answer": 2}), "answer is no index of choices, 0 to 1"),
        (json.dumps({**CHOICE, "answer": True}), "answer is no index of choices, 0 to 1"),
        (json.dumps({"prompt": "x", "answer": "4"}), "some items have choices and some have not"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, line: str, why: str):
    with pytest.raises(RefusedError, match=rf"line 3: {why}"):
        told(tmp_path, CHOICE, "", line)


def test_a_file_without_items_is_refused(tmp_path: Path):
    with pytest.raises(RefusedError, match="has no items; each line must be"):
        told(tmp_path)
    with pytest.raises(RefusedError, match="cannot be read"):
        read_task(str(tmp_path / "nowhere"), Renderer(Words()), 10)
