"""Measures how fast a served model answers."""

import itertools
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx
from httpx_sse import aconnect_sse

from launcher.errors import QuantizeError
from launcher.measure.others import Others
from launcher.quantize.gate.asking import CONCURRENCY, PATIENCE, Tell, all_of
from launcher.quantize.gate.timings import SpeedSample, Timing

_TOKENS = 32
"""Generated for each request, whatever the model would like."""
_PROMPT = 128
"""Tokens of a prompt at most: on a CPU of few cores a request must stay below a second or two."""
_WARM_UP = 2
"""Requests that are not counted: the first ones find caches cold and kernels not compiled."""
_ALONE = (4, 8)
"""Requests one at a time, at least and at most."""
_TOGETHER = (8, 24)
"""Requests several at once."""
_BUDGET = 15.0
"""Seconds after which no more than the least are sent: a machine that needs longer is busy with something else."""


async def measure(url: str, model_name: str, prompts: Sequence[Sequence[int]], tell: Tell) -> SpeedSample:
    """Stream answers to these prompts (token ids), the first ones again when there are few.

    The engine must not have a prefix cache. Raises :class:`QuantizeError` when it does not answer properly.
    """
    if not prompts:
        raise QuantizeError("speed cannot be measured without prompts: give held-out records")
    endless = itertools.cycle([prompt[:_PROMPT] for prompt in prompts])
    asked = [*itertools.islice(endless, _WARM_UP + max(*_ALONE, *_TOGETHER))]
    warm_up, asked = asked[:_WARM_UP], asked[_WARM_UP:]
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:

        async def timed(prompt: Sequence[int]) -> Timing:
            body = {"model": model_name, "prompt": list(prompt), "max_tokens": _TOKENS, "temperature": 0}
            return await _stream(client, f"{url}/v1/completions", body)

        await all_of(timed, warm_up, "warming up", tell, 1)
        others = Others()
        title = "measuring one request at a time"
        alone = await all_of(timed, asked[: _ALONE[1]], title, tell, 1, goes_on=_within(_ALONE[0]))
        title = f"measuring {CONCURRENCY} requests at once"
        together = await all_of(timed, asked[: _TOGETHER[1]], title, tell, goes_on=_within(_TOGETHER[0]))
    return SpeedSample(tuple(alone), tuple(together), CONCURRENCY, others.share())


def _within(least: int) -> Callable[[int], bool]:
    deadline = time.monotonic() + _BUDGET
    return lambda sent: sent < least or time.monotonic() < deadline


async def _stream(client: httpx.AsyncClient, url: str, body: dict[str, Any]) -> Timing:
    body |= {"ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}}
    tokens, first = 0, 0.0
    sent = last = time.perf_counter()
    try:
        async with aconnect_sse(client, "POST", url, json=body) as source:
            if source.response.status_code != httpx.codes.OK:
                said = (await source.response.aread())[:300].decode(errors="replace")
                raise QuantizeError(f"{url} answered {source.response.status_code} while speed was measured: {said}")
            async for event in source.aiter_sse():
                if event.data == "[DONE]":
                    break
                chunk = json.loads(event.data)
                if chunk["choices"]:
                    last = time.perf_counter()
                    first = first or last
                tokens = (chunk.get("usage") or {}).get("completion_tokens", tokens)
    except (httpx.HTTPError, ValueError, KeyError) as exc:
        raise QuantizeError(f"{url} broke off an answer while speed was measured: {exc!r}") from exc
    if not tokens or not first:
        raise QuantizeError(f"{url} gave an empty answer while speed was measured")
    return Timing(first - sent, last - sent, tokens)
