"""What is asked of a server that is measured."""

import json
from pathlib import Path
from statistics import fmean, median

import pytest

from launcher.errors import MeasureError
from launcher.measure.made_up import MadeUp
from launcher.measure.workload import Length, Part
from launcher.measure.workload_file import load, shipped


def part(**values) -> Part:
    usual = {"ask": "write", "prompt_words": {"constant": 60}, "output_tokens": {"constant": 32}}
    return Part.model_validate_json(json.dumps(usual | values))


def asked(request) -> str:
    body = request.body
    return body["prompt"] if "prompt" in body else body["messages"][-1]["content"]


@pytest.mark.parametrize("name", [*shipped()])
def test_every_shipped_workload_makes_requests_that_fit_the_demo(name: str):
    requests = load(name).requests(0)[:200]
    assert len({json.dumps(each.body) for each in requests}) == 200
    longest = max(sum(len(str(value).split()) for value in each.body.values()) for each in requests)
    assert 1.5 * longest + 256 < 2048


def test_the_same_seed_makes_the_same_requests_whichever_are_looked_at():
    parts = [part(), part(ask="edit", chat=False)]
    assert MadeUp(parts, 1)[5:8] == [MadeUp(parts, 1)[number] for number in (5, 6, 7)]
    assert MadeUp(parts, 1)[:50] != MadeUp(parts, 2)[:50]


def test_requests_stay_the_same_from_version_to_version():
    (first,) = MadeUp([part(prompt_words={"constant": 30})], 7)[:1]
    assert asked(first) == (
        "Write a long and detailed story about a jolly miller, a letter and a forest. Do not use any of these "
        "sentences: The rapid shadow polished the faint miller across the notebook."
    )


@pytest.mark.parametrize(
    ("length", "least", "most", "middle"),
    [
        ({"constant": 40}, 40, 40, 40),
        ({"uniform": {"least": 10, "most": 30}}, 10, 30, 20),
        ({"normal": {"mean": 50, "deviation": 10, "least": 20, "most": 80}}, 20, 80, 50),
        ({"lognormal": {"median": 50, "sigma": 0.5, "least": 10, "most": 400}}, 10, 400, 50),
        ({"values": [16, 64, 64]}, 16, 64, 64),
    ],
)
def test_lengths_have_their_distribution(length: dict, least: int, most: int, middle: int):
    requests = MadeUp([part(output_tokens=length)], 0)[:2000]
    tokens = [each.body["max_tokens"] for each in requests]
    assert min(tokens) >= least
    assert max(tokens) <= most
    assert median(tokens) == pytest.approx(middle, rel=0.07)


def test_prompts_have_about_the_words_that_are_asked_for():
    for ask in ("write", "repeat", "edit", "answer"):
        words = [len(asked(each).split()) for each in MadeUp([part(ask=ask, prompt_words={"constant": 200})], 0)[:30]]
        assert fmean(words) == pytest.approx(200, rel=0.15), ask


def test_temperatures_and_parts_come_by_their_weights():
    hot = part(temperatures=[{"value": 0.5}, {"value": 1.0, "weight": 3}], weight=3)
    requests = MadeUp([hot, part(chat=False)], 0)[:4000]
    chats = [each for each in requests if each.route == "chat/completions"]
    assert len(chats) / 4000 == pytest.approx(0.75, abs=0.03)
    assert fmean(each.body["temperature"] == 1.0 for each in chats) == pytest.approx(0.75, abs=0.03)


def test_shared_prefixes_are_shared_by_as_many_as_said():
    shared = part(shared_prefix={"share": 0.6, "words": 50, "number": 3})
    systems = [
        each.body["messages"][0]["content"] for each in MadeUp([shared], 0)[:1000] if len(each.body["messages"]) > 1
    ]
    assert len(set(systems)) == 3
    assert len(systems) / 1000 == pytest.approx(0.6, abs=0.05)
    (plain,) = MadeUp([part(chat=False, shared_prefix={"words": 50})], 0)[:1]
    assert len(plain.body["prompt"].split()) > 100


def test_what_is_repeated_stands_in_the_prompt():
    for request in MadeUp([part(ask="repeat"), part(ask="answer"), part(ask="repeat", chat=False)], 0)[:50]:
        assert request.answer
        assert request.answer in asked(request)


def test_other_parameters_are_sent_as_they_are():
    (request,) = MadeUp([part(ignore_eos=True, parameters={"top_p": 0.9})], 0)[:1]
    assert (request.body["ignore_eos"], request.body["top_p"]) == (True, 0.9)


def test_all_faults_of_a_file_are_told_with_their_places(tmp_path: Path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "parts:\n  - ask: write\n    promt_words: {constant: 3}\n    output_tokens: {constant: 0}\n"
        "    prompt_words: {uniform: {least: 9, most: 3}}\n"
    )
    with pytest.raises(MeasureError) as caught:
        load(str(file))
    told = "\n".join(caught.value.messages)
    assert f"{file}:3: parts.0.promt_words: unknown key, did you mean prompt_words?" in told
    assert f"{file}:4: parts.0.output_tokens.constant:" in told
    assert f"{file}:5: parts.0.prompt_words.uniform: least 9 is more than most 3" in told


@pytest.mark.parametrize("length", [{}, {"constant": 1, "values": [1]}])
def test_a_length_has_exactly_one_distribution(length: dict):
    with pytest.raises(ValueError, match="exactly one"):
        Length.model_validate(length)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("description: nothing\n", "exactly one of them"),
        ("parts: [\n", "not valid YAML"),
        ("records: missing.jsonl\n", "cannot read the records"),
    ],
)
def test_a_file_that_is_none_says_why(tmp_path: Path, text: str, said: str):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(MeasureError, match=said):
        load(str(file))


def test_an_unknown_name_says_which_there_are():
    with pytest.raises(MeasureError, match=r"did you mean chat\? Shipped are: chat, code-edit"):
        load("chta")


def test_records_are_sent_as_they_were_asked(tmp_path: Path):
    lines = [
        {"messages": [{"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}], "timestamp": 12.5},
        {"prompt": "a", "temperature": 0.3, "max_tokens": 7, "model": "x", "at": 10, "answer": "yes", "user": "u"},
        {"messages": [{"role": "user", "content": "d"}], "timestamp": "1970-01-01T00:00:11Z", "stream": True},
    ]
    (tmp_path / "real.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    (tmp_path / "mine.yaml").write_text("records: real.jsonl\nmax_tokens: 9\n")
    requests = load(str(tmp_path / "mine.yaml")).requests(0)
    assert [each.at for each in requests] == [0, 1, 2.5]
    assert [each.answer for each in requests] == ["yes", None, None]
    assert requests[0].body == {"prompt": "a", "temperature": 0.3, "max_tokens": 7}
    assert requests[1].body == {"messages": [{"role": "user", "content": "d"}], "max_tokens": 9}
    assert requests[2].body["messages"] == [{"role": "user", "content": "b"}]
    assert len(load(str(tmp_path / "real.jsonl")).requests(0)) == 3


def test_lines_that_cannot_be_sent_are_told_one_by_one(tmp_path: Path):
    bad = ["7", "{", '{"messages": "x"}', '{"messages": [{"role": "assistant"}]}', '{"text": "a"}']
    bad += ['{"prompt": "a", "at": "noon"}', '{"prompt": "a", "answer": 4}', '{"prompt": ""}']
    file = tmp_path / "real.jsonl"
    file.write_text("\n".join(bad))
    with pytest.raises(MeasureError) as caught:
        load(str(file))
    assert [each.partition(": ")[0] for each in caught.value.messages] == [f"{file}:{n}" for n in range(1, 9)]


def test_an_empty_file_of_records_says_what_to_write(tmp_path: Path):
    file = tmp_path / "real.jsonl"
    file.touch()
    with pytest.raises(MeasureError, match="has no requests"):
        load(str(file))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"prompt": "a", "temperature": NaN}', "a number is NaN or beyond all bounds"),
        ('{"prompt": "a", "at": 1e999}', "a number is NaN or beyond all bounds"),
        ('{"prompt": "a\\ud800"}', "half a character, '\\ud800'"),
        ('{"prompt": "a", "at": 1' + "0" * 400 + "}", "too large"),
    ],
)
def test_a_record_that_no_client_could_send_is_refused_with_its_line(tmp_path: Path, line: str, said: str):
    file = tmp_path / "records.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(MeasureError) as refused:
        load(str(file))
    assert f"{file}:1: " in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "length",
    [
        "{constant: 1000000000000}",
        "{normal: {mean: 1.0e+308, deviation: 1.0e+308}}",
        "{lognormal: {median: 10, sigma: 1000}}",
        "{normal: {mean: 10, deviation: 1, least: 100, most: 5}}",
    ],
)
def test_lengths_that_cannot_be_drawn_are_refused_before_anything_is_sent(tmp_path: Path, length: str):
    file = tmp_path / "mine.yaml"
    file.write_text(f"parts:\n  - {{ask: write, prompt_words: {length}, output_tokens: {{constant: 8}}}}\n")
    with pytest.raises(MeasureError, match=r"parts\.0\.prompt_words"):
        load(str(file))


@pytest.mark.parametrize("path", ["~nobody-of-this-name/x", "a\\0b"])
def test_records_at_a_path_that_cannot_be_are_told(tmp_path: Path, path: str):
    file = tmp_path / "mine.yaml"
    file.write_text(f'records: "{path}"\n')
    with pytest.raises(MeasureError, match="cannot read the records"):
        load(str(file))
