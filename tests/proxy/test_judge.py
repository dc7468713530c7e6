"""When two greedy answers are the same text, and when prefill's KV has made another one."""

import json

import pytest

from proxy.proof.judge import Token, difference, tokens_of, tolerance_for


def said(*tokens: tuple[str, float], rivals: dict[str, float] | None = None) -> list[Token]:
    """An answer; ``rivals`` are the log-probabilities of other tokens in each place."""
    return [Token(token, logprob, {token: logprob, **(rivals or {})}) for token, logprob in tokens]


def test_the_same_tokens_are_the_same_text_however_likely_they_were():
    assert difference(said(("a", -0.1), ("b", -3.0)), said(("a", -0.9), ("b", -0.2)), 0.1) == ""


@pytest.mark.parametrize(("behind", "same"), [(0.05, True), (0.25, False)])
def test_two_tokens_that_are_nearly_as_likely_are_a_tie(behind: float, same: bool):
    reference = said(("b", -1.0), rivals={"a": -1.0 - behind})
    found = difference(said(("a", -0.9)), reference, 0.1)
    assert found == (
        "" if same else f"token 0 is a with prefill's KV and b without, which is likelier by {behind:.2f} nats"
    )


def test_what_follows_a_tie_is_no_evidence():
    reference = said(("b", -0.7), ("c", -0.1), rivals={"a": -0.7})
    assert difference(said(("a", -0.7), ("z", -0.1)), reference, 0.1) == ""


def test_a_token_that_is_not_among_the_likeliest_is_another_text():
    assert "token 1 is z with prefill's KV and b without" in difference(
        said(("a", -0.1), ("z", -0.1)), said(("a", -0.1), ("b", -0.1)), 1.0
    )


@pytest.mark.parametrize(("got", "expected"), [(1, 2), (2, 1)])
def test_an_answer_of_another_length_is_another_text(got: int, expected: int):
    answer = [("a", -0.1), ("b", -0.1)]
    told = difference(said(*answer[:got]), said(*answer[:expected]), 1.0)
    assert told == f"{got} tokens with prefill's KV, {expected} without"


@pytest.mark.parametrize("dtype", ["auto", "bfloat16", "float16", ""])
def test_kv_of_16_bits_has_to_give_nearly_the_same(dtype: str):
    assert tolerance_for(dtype) == 0.1


@pytest.mark.parametrize("dtype", ["fp8", "fp8_e4m3", "fp8_e5m2", "nvfp4"])
def test_kv_of_8_bits_and_less_may_differ_by_half_a_nat(dtype: str):
    reference = said(("b", -1.0), rivals={"a": -1.5})
    assert difference(said(("a", -1.0)), reference, tolerance_for(dtype)) == ""
    assert difference(said(("a", -1.0)), reference, tolerance_for("auto")) != ""


def test_the_tokens_of_an_answer_are_read_with_their_rivals():
    logprobs = {"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": [{"a": -0.5, "b": -0.9}]}
    answer = json.dumps({"choices": [{"text": "a", "logprobs": logprobs}]}).encode()
    assert tokens_of(answer) == [Token("a", -0.5, {"a": -0.5, "b": -0.9})]


@pytest.mark.parametrize(
    "answer",
    [b"{}", b'{"choices": []}', b'{"choices": [{"logprobs": null}]}', b'{"choices": [{"logprobs": {"tokens": []}}]}'],
)
def test_an_answer_without_log_probabilities_cannot_be_judged(answer: bytes):
    with pytest.raises(ValueError, match="no log-probabilities"):
        tokens_of(answer)
