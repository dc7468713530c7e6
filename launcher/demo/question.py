"""Asks the proxy one question, as any OpenAI client would, and measures."""

import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx
from httpx_sse import EventSource, aconnect_sse

from launcher.errors import ProofError


@dataclass(frozen=True, slots=True)
class Answer:
    """A streamed answer and its figures."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    ttft: float
    """Seconds from sending to the first text (time to first token)."""
    decode_time: float
    """Seconds from the first to the last text."""
    path: str
    """What the proxy says it did: ``pd`` or ``aggregated``."""

    @property
    def tokens_per_second(self) -> float | None:
        """While decoding, the first token left out; ``None`` for an answer of one token."""
        return (self.completion_tokens - 1) / self.decode_time if self.decode_time > 0 else None


async def ask(
    client: httpx.AsyncClient,
    address: str,
    model: str,
    question: str,
    show: Callable[[str], None],
    *,
    tokens: int = 128,
) -> Answer:
    """Stream the greedy answer of at most ``tokens``, each piece to ``show``.

    Raises :class:`ProofError` when there is no proper answer.
    """
    body = {
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "temperature": 0,
        "max_completion_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    pieces: list[str] = []
    usage: dict[str, int] = {}
    sent = first = last = time.perf_counter()
    async with aconnect_sse(client, "POST", f"{address}/v1/chat/completions", json=body) as source:
        async for chunk in _chunks(source):
            usage = chunk.get("usage") or usage
            for piece in filter(None, (choice["delta"].get("content") for choice in chunk["choices"])):
                last = time.perf_counter()
                first = first if pieces else last
                pieces.append(piece)
                show(piece)
        path = source.response.headers.get("x-duet-path", "unknown")
    if not (pieces and usage):
        raise ProofError("the answer is empty, or came without its usage")
    return Answer("".join(pieces), usage["prompt_tokens"], usage["completion_tokens"], first - sent, last - first, path)


async def _chunks(source: EventSource) -> AsyncIterator[dict[str, Any]]:
    """The chunks of a complete stream; raises :class:`ProofError` for anything else."""
    if source.response.status_code != httpx.codes.OK:
        said = (await source.response.aread())[:500].decode(errors="replace")
        raise ProofError(f"the server answered {source.response.status_code}: {said}")
    async for event in source.aiter_sse():
        if event.data == "[DONE]":
            return
        chunk = json.loads(event.data)
        if "error" in chunk:
            raise ProofError(f"the answer broke off: {chunk['error']}")
        yield chunk
    raise ProofError("the answer's stream ended before it was complete")
