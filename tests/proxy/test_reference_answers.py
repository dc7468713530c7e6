"""Engines are compared with a baseline's answers."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.baseline import PROMPTS, keep, record
from launcher.errors import BaselineError
from proxy.config import ConfigError
from proxy.keys import new_key
from proxy.reference import Reference, ReferenceAnswer, agreed, dump, load
from proxy.settings import ClientKey, Settings
from proxy.settings import Reference as Where
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import eventually

ANSWERS = Reference("fake", (ReferenceAnswer((1, 2), (3, 4, 5, 6)), ReferenceAnswer((7,), (8, 9))))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "answers.json"
    file.write_text(dump(ANSWERS))
    return Settings(reference=Where(str(file), interval=0.01))


async def test_an_engine_that_answers_like_the_baseline_agrees_wholly(start, settings):
    duet = await start(settings=settings)
    for engine in ("prefill-0", "decode-0"):
        await eventually(lambda name=engine: duet.metric("duet_reference_agreement", engine=name), 1)


async def test_one_that_would_choose_other_tokens_agrees_less_until_it_does_again(start, settings):
    duet = await start(settings=settings)
    duet.decode.drift = 2  # of places 2 to 5 the second and fourth, of places 1 and 2 the second: 3 of 6
    await eventually(lambda: duet.metric("duet_reference_agreement", engine="decode-0"), 0.5)
    assert await duet.metric("duet_reference_agreement", engine="prefill-0") == 1
    duet.decode.drift = 0
    await eventually(lambda: duet.metric("duet_reference_agreement", engine="decode-0"), 1)


async def test_of_an_engine_that_is_away_nothing_is_said(start, settings):
    duet = await start(settings=settings, probe_interval=0.02)
    await eventually(lambda: duet.metric("duet_reference_agreement", engine="decode-0"), 1)
    await duet.decode.stop()

    async def told() -> bool:
        return 'duet_reference_agreement{engine="decode-0"}' in (await duet.client.get("/metrics")).text

    await eventually(told, False)


async def test_one_that_does_not_tell_is_not_judged_and_the_log_says_why(start, settings, caplog):
    duet = await start(settings=settings, engines=[FakeEngine("prefill"), FakeEngine("decode")])
    duet.decode.instead["/v1/completions"] = (400, b'{"error":{"message":"no"}}')

    async def said() -> bool:
        await asyncio.sleep(0)  # the proxy is in this process
        return "decode-0 was not compared with the reference answers: it answered 400" in caplog.text

    await eventually(said, True)


def test_agreement_counts_places_of_the_answer_only():
    rank = lambda token, rank: {str(token): {"logprob": -0.1, "rank": rank}}  # noqa: E731
    told = {"choices": [{"prompt_logprobs": [None, rank(2, 9), rank(3, 1), rank(4, 2), rank(5, 1), rank(6, 1)]}]}
    assert agreed(ANSWERS.answers[0], told) == 3


@pytest.mark.parametrize(
    "told", [{}, {"choices": []}, {"choices": [{"prompt_logprobs": None}]}, {"choices": [{"prompt_logprobs": [None]}]}]
)
def test_an_answer_without_log_probabilities_is_an_error(told):
    with pytest.raises(ValueError, match="tells no log-probabilities"):
        agreed(ANSWERS.answers[0], told)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "model: Field required"),
        ('{"model":"m","answers":[]}', "answers: Tuple should have at least 1 item"),
        ('{"model":"m","answers":[{"prompt":[1],"answer":[-1]}]}', "answers.0.answer.0"),
        ('{"model":"m","version":2,"answers":[{"prompt":[1],"answer":[1]}]}', "version"),
        ("no json", "whole file"),
    ],
)
def test_a_file_that_holds_none_is_refused_with_its_place(tmp_path, text, says):
    file = tmp_path / "answers.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load(file)


async def test_a_missing_file_keeps_the_proxy_from_starting(start, tmp_path):
    settings = replace(Settings(), reference=Where(str(tmp_path / "none.json")))
    with pytest.raises(ConfigError, match="No such file"):
        await start(settings=settings)


async def test_what_was_recorded_of_an_engine_is_what_it_agrees_with(start, tmp_path):
    engine = FakeEngine("aggregated")
    async with engine:
        recorded = await asyncio.to_thread(record, engine.url, PROMPTS, 8, None)
    assert (recorded.model, len(recorded.answers)) == ("fake", len(PROMPTS))
    assert all(len(each.answer) == 8 for each in recorded.answers)
    file = tmp_path / "answers.json"
    file.write_text(dump(recorded))
    assert load(file) == recorded


def test_a_baseline_that_does_not_answer_is_told_by_its_address():
    with pytest.raises(BaselineError, match=r"http://127\.0\.0\.1:9 does not answer"):
        record("http://127.0.0.1:9", PROMPTS, 8, None)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[" * 100_000, "RecursionError"),
        (b'{"choices": [{"token_ids": [], "prompt_token_ids": [1]}]}', "answers: "),
        (b'{"choices": [{"token_ids": ["a"], "prompt_token_ids": [1]}]}', "answers.0.answer.0: "),
        (b'{"choices": [{"token_ids": [-1], "prompt_token_ids": [1]}]}', "answers.0.answer.0: "),
    ],
)
async def test_a_server_that_answers_otherwise_than_vllm_is_no_baseline(body, said):
    engine = FakeEngine("aggregated")
    engine.instead["/v1/completions"] = (200, body)
    async with engine:
        with pytest.raises(BaselineError, match=rf"{engine.url} does not answer as vLLM 0.32 does .*{said}"):
            await asyncio.to_thread(record, engine.url, PROMPTS, 8, None)


async def test_a_baseline_behind_a_key_is_asked_with_it(start):
    key, digest = new_key()
    duet = await start(settings=Settings(client_keys=(ClientKey("me", digest),)))
    with pytest.raises(BaselineError, match=r"answered 401: give a client's key by --key"):
        await asyncio.to_thread(record, duet.url, PROMPTS, 8, None)
    found = await asyncio.to_thread(record, duet.url, PROMPTS, 8, None, {"authorization": f"Bearer {key}"})
    assert len(found.answers) == len(PROMPTS)


def test_answers_that_cannot_be_kept_leave_what_was_there(tmp_path):
    file = tmp_path / "answers.json"
    keep(ANSWERS, file)
    assert load(file) == ANSWERS
    (tmp_path / "answers.json.new").mkdir()
    with pytest.raises(BaselineError, match=rf"cannot write {file}: Is a directory"):
        keep(replace(ANSWERS, model="other"), file)
    assert load(file) == ANSWERS


def test_answers_may_go_to_what_is_no_file():
    with pytest.raises(BaselineError, match="cannot write /dev/full: No space left on device"):
        keep(ANSWERS, Path("/dev/full"))
    assert Path("/dev/full").is_char_device()
