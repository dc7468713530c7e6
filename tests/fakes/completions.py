"""How vLLM 0.32 completes a request. The text depends on the prompt alone, never on the way here."""

import json
import zlib
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tests.fakes.answers import CREATED, MAX_MODEL_LEN, error, event

FINGERPRINT = "vllm-0.32.0-fake"
FAILED = error("Internal server error", "InternalServerError", code=500)
"""The answer, or the event, when the engine ends a request with the reason "error"."""
_WORDS = ("red", "green", "blue", "fish", "bird", "tree", "stone", "river", "cloud", "light", "house", "road")


@dataclass(frozen=True)
class Ending:
    """An end before its time."""

    reason: str
    """``abort`` or ``error``."""
    after: int = 0
    """So many tokens are complete."""


@dataclass(frozen=True)
class Choice:
    """One answer to one prompt."""

    index: int
    prompt: list[str]
    tokens: list[str]
    """What was generated."""
    texts: list[str]
    """What of each token is shown."""
    finish: str
    stop: str | None


def prompts_of(body: dict, chat: bool) -> list[list[str]]:
    """Every prompt of a request as its tokens: words, or given token numbers."""
    if chat:
        return [json.dumps(body.get("messages")).split()]
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return [prompt.split()]
    if prompt and isinstance(prompt[0], int):
        return [[str(token) for token in prompt]]
    return [each.split() if isinstance(each, str) else [str(token) for token in each] for each in prompt]


def limit_of(body: dict) -> int:
    """How many tokens the request may get."""
    for key in ("max_completion_tokens", "max_tokens"):
        if body.get(key) is not None:
            return body[key]
    return 16


def choices_of(body: dict, chat: bool, ending: Ending | None = None) -> list[Choice]:
    """All answers: for every prompt, as many as were asked for."""
    prompts = [prompt for prompt in prompts_of(body, chat) for _ in range(body.get("n") or 1)]
    return [_choice(index, prompt, body, ending) for index, prompt in enumerate(prompts)]


def _choice(index: int, prompt: list[str], body: dict, ending: Ending | None) -> Choice:
    seed = zlib.crc32(" ".join(prompt).encode())
    count = min(limit_of(body), MAX_MODEL_LEN - len(prompt))
    tokens = [" " + _WORDS[((seed >> (i % 24)) + i) % len(_WORDS)] for i in range(count)]
    finish, stop = "length", None
    stops = body.get("stop") or []
    found = [
        (at, each) for each in ([stops] if isinstance(stops, str) else stops) if (at := "".join(tokens).find(each)) >= 0
    ]
    end = sum(map(len, tokens))
    if found:
        end, stop = min(found)
        finish = "stop"
        while len("".join(tokens[:-1])) >= end + len(stop):
            tokens.pop()
    if ending is not None and ending.after < len(tokens):
        tokens, finish, stop = tokens[: ending.after], ending.reason, None
    starts = [len("".join(tokens[:i])) for i in range(len(tokens))]
    texts = [token[: max(end - start, 0)] for token, start in zip(tokens, starts, strict=True)]
    return Choice(index, prompt, tokens, texts, finish, stop)


def whole(
    body: dict,
    chat: bool,
    model: str,
    answer: str,
    choices: list[Choice],
    kv: dict | None,
    *,
    drift: int = 0,
    metrics: dict | None = None,
) -> dict:
    """An answer that is not streamed; with ``drift``, every so many-th token of a prompt is not its choice."""
    prompt = sum(map(len, prompts_of(body, chat)))
    only_chat = {"prompt_logprobs": None, "prompt_token_ids": _ids(body, choices[0].prompt), "prompt_text": None}
    return {
        "id": answer,
        "object": "chat.completion" if chat else "text_completion",
        "created": CREATED,
        "model": model,
        "choices": [_whole_choice(each, body, chat, drift) for each in choices],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": _usage(prompt, choices, _cached(chat) | {"multimodal_tokens": None})
        | {"completion_tokens_details": None},
        **(only_chat if chat else {}),
        "kv_transfer_params": kv,
        "ec_transfer_params": None,
        "metrics": metrics,
    }


def drafted(drafts: int, drafted: int, accepted: int) -> dict:
    """What an engine tells of its speculation for one answer, when it is asked to."""
    k = drafted // drafts
    return {
        "speculative_decoding": {
            "mean_acceptance_length": 1 + accepted / drafts,
            "draft_acceptance_rate": accepted / drafted,
            "acceptance_histogram": [0] * k + [drafts],
            "num_spec_steps": drafts,
            "num_accepted_draft_tokens": accepted,
            "num_draft_tokens": drafted,
            "num_spec_tokens": k,
        }
    }


def _whole_choice(choice: Choice, body: dict, chat: bool, drift: int) -> dict:
    text = "".join(choice.texts)
    middle = {
        "logprobs": _logprobs(body, chat, choice, 0, len(choice.tokens)),
        "finish_reason": choice.finish,
        "stop_reason": choice.stop,
        "token_ids": _ids(body, choice.tokens),
    }
    if chat:
        unused = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
        message = {"role": "assistant", "content": text, **unused}
        return {"index": choice.index, "message": message, **middle, "routed_experts": None}
    if body.get("echo"):
        text = " ".join(choice.prompt) + text
    count = body.get("prompt_logprobs")
    told = None if count is None else _prompt_logprobs(choice, drift, count)
    last = {"prompt_logprobs": told, "prompt_token_ids": _ids(body, choice.prompt), "routed_experts": None}
    return {"index": choice.index, "text": text, **middle, **last}


def events(
    body: dict, chat: bool, model: str, answer: str, choices: list[Choice], metrics: dict | None = None
) -> list[bytes]:
    """A streamed answer, one event after the other, ``[DONE]`` last.

    Before the first token, an abort is not told in the stream: neither an event nor a finish reason, only ``[DONE]``.
    An error is told, but a chat's events begin with the role all the same.
    """
    head = {
        "id": answer,
        "object": "chat.completion.chunk" if chat else "text_completion",
        "created": CREATED,
        "model": model,
    }
    options = body.get("stream_options") or {}
    with_usage = bool(options.get("include_usage"))
    prompt = sum(map(len, prompts_of(body, chat)))
    done: list[bytes] = []
    if chat:
        done += [event(_role_chunk(head, body, each, with_usage and options)) for each in choices]
    for steps in zip_longest(*(_steps(each) for each in choices)):
        for choice, step in zip(choices, steps, strict=True):
            if step is None:
                continue
            if step == len(choice.tokens) and choice.finish == "error":
                return [*done, event(FAILED), b"data: [DONE]\n\n"]
            chunk = {**head, "choices": [_part(choice, step, body, chat)]}
            if chunk["choices"][0]["finish_reason"] is not None and not with_usage:
                chunk["system_fingerprint"] = FINGERPRINT
            if with_usage and options.get("continuous_usage_stats"):
                chunk["usage"] = _running_usage(choice, step + 1, chat)
            done.append(event(chunk))
    if with_usage:
        usage = _usage(prompt, choices, {key: value for key, value in _cached(chat).items() if value is not None})
        told = {} if metrics is None else {"metrics": metrics}
        done.append(event({**head, "choices": [], "usage": usage, "system_fingerprint": FINGERPRINT, **told}))
    return [*done, b"data: [DONE]\n\n"]


def _steps(choice: Choice) -> range:
    """One step a token; one more that only ends what ended before its time."""
    count = len(choice.tokens)
    if choice.finish == "error" or (choice.finish == "abort" and count):
        return range(count + 1)
    return range(count)


def _role_chunk(head: dict, body: dict, choice: Choice, options: Any) -> dict:
    first = {"index": choice.index, "delta": {"role": "assistant", "content": ""}, "logprobs": None}
    chunk = {**head, "choices": [first | {"finish_reason": None}]}
    if options and options.get("continuous_usage_stats"):
        chunk["usage"] = _running_usage(choice, 0, True)
    return chunk | {"prompt_token_ids": _ids(body, choice.prompt), "prompt_text": None}


def _part(choice: Choice, step: int, body: dict, chat: bool) -> dict:
    """What one event says of one choice. Chat leaves out what is not set, text completions do not."""
    text = "".join(choice.texts[step : step + 1])
    last = step == _steps(choice)[-1]
    logprobs = _logprobs(body, chat, choice, step, step + 1) if step < len(choice.tokens) else None
    rest = {"logprobs": logprobs, "finish_reason": choice.finish if last else None}
    token_ids = {"token_ids": _ids(body, choice.tokens[step : step + 1])}
    stop = {"stop_reason": choice.stop if last else None}
    if chat:
        delta = {"content": text} if step < len(choice.tokens) else {}
        return {"index": choice.index, "delta": delta, **rest, **(stop if last else {}), **token_ids}
    prompt_ids = None
    if step == 0:
        prompt_ids = _ids(body | ({"return_token_ids": True} if body.get("echo") else {}), choice.prompt)
        text = " ".join(choice.prompt) + text if body.get("echo") else text
    return {"index": choice.index, "text": text, **rest, **stop, "prompt_token_ids": prompt_ids, **token_ids}


def _cached(chat: bool) -> dict:
    return {"cached_tokens": 0, "created_cache_tokens": 0 if chat else None}


def _usage(prompt: int, choices: list[Choice], details: dict) -> dict:
    completion = sum(len(each.tokens) for each in choices)
    counts = {"prompt_tokens": prompt, "total_tokens": prompt + completion, "completion_tokens": completion}
    return counts | {"prompt_tokens_details": details}


def _running_usage(choice: Choice, count: int, chat: bool) -> dict:
    count, prompt = min(count, len(choice.tokens)), len(choice.prompt)
    usage = {"prompt_tokens": prompt, "total_tokens": prompt + count, "completion_tokens": count}
    return usage | ({"completion_tokens_details": None} if chat else {})


def _ids(body: dict, words: list[str]) -> list[int] | None:
    return [zlib.crc32(word.encode()) % 2048 for word in words] if body.get("return_token_ids") else None


def _prompt_logprobs(choice: Choice, drift: int, count: int) -> list[dict | None]:
    """Of each token but the first: its own, and so many of the most likely ones, of which it is one."""
    places: list[dict | None] = [None]
    for place, word in enumerate(choice.prompt[1:], start=1):
        token = int(word) if word.isdecimal() else zlib.crc32(word.encode()) % 2048
        own = 2 if drift and place % drift == 0 else 1
        ranks = dict.fromkeys((own, *range(1, count + 1)))
        places.append({str(token + rank - own): _logprob_of(rank, word) for rank in ranks})
    return places


def _logprob_of(rank: int, word: str) -> dict:
    return {"logprob": -float(rank), "rank": rank, "decoded_token": word}


def _logprobs(body: dict, chat: bool, choice: Choice, start: int, stop: int) -> dict | None:
    """The log-probabilities of some tokens, all the same."""
    tokens = choice.tokens[start:stop]
    if chat and body.get("logprobs"):
        count = body.get("top_logprobs") or 0
        said = [{"token": token, "logprob": -1.0, "bytes": list(token.encode())} for token in tokens]
        return {"content": [each | {"top_logprobs": [each] * count} for each in said]}
    if not chat and body.get("logprobs") is not None:
        return {
            "text_offset": [len("".join(choice.tokens[:i])) for i in range(start, start + len(tokens))],
            "token_logprobs": [-1.0] * len(tokens),
            "tokens": tokens,
            "top_logprobs": [{token: -1.0} for token in tokens],
        }
    return None
