"""Decision: whether two greedy answers to one prompt are the same."""

from dataclasses import dataclass
from itertools import zip_longest

from proxy.answer import json_object

_EXACT = 0.1
"""Nats. With KV of 16 bits and more two tokens that are closer than this are a tie: prefill computes a prompt in other
pieces than decode, and rounds otherwise."""
_COARSE = 1.0
"""With less precise KV, which prefill reads back in other kernels than decode: half a nat has been seen."""
_PRECISE = ("auto", "bfloat16", "float16", "float32", "half", "float", "")


@dataclass(frozen=True, slots=True)
class Token:
    """One that was generated."""

    token: str
    logprob: float
    likeliest: dict[str, float]
    """Log-probabilities of the likeliest tokens in its place."""


def tolerance_for(kv_dtype: str) -> float:
    """Nats by which log-probabilities may differ, by vLLM's name of the KV cache's data type."""
    return _EXACT if kv_dtype in _PRECISE else _COARSE


def tokens_of(answer: bytes) -> list[Token]:
    """Of a completion with log-probabilities; raises :class:`ValueError` when it has none."""
    try:
        choices = json_object(answer)["choices"]
        found = choices[0]["logprobs"]  # type: ignore[index]
        rows = zip(found["tokens"], found["token_logprobs"], found["top_logprobs"], strict=True)
        tokens = [Token(str(token), float(logprob), dict(top or {})) for token, logprob, top in rows]
    except (KeyError, TypeError, IndexError) as exc:
        raise ValueError("the answer has no log-probabilities") from exc
    if not tokens:
        raise ValueError("the answer has no tokens")
    return tokens


def difference(got: list[Token], expected: list[Token], tolerance: float) -> str:
    """What differs; empty when nothing does that matters.

    After a tie the texts may go apart; what follows is no evidence.
    """
    for place, (one, other) in enumerate(zip_longest(got, expected)):
        if one is None or other is None:
            return f"{len(got)} tokens with prefill's KV, {len(expected)} without"
        if one.token == other.token:
            continue
        behind = other.logprob - other.likeliest.get(one.token, float("-inf"))
        if behind <= tolerance:
            return ""
        return (
            f"token {place} is {one.token} with prefill's KV and {other.token} without, "
            f"which is likelier by {behind:.2f} nats"
        )
    return ""
