"""Sends one request and times its stream."""

import time
from dataclasses import dataclass, field

import httpx
from httpx_sse import SSEError, aconnect_sse

from launcher.measure.chunk import Chunk, chunk
from launcher.measure.request import Request
from launcher.measure.sample import Sample
from launcher.measure.target import Target

_SHOWN = 200
"""Letters of what a server says."""
_FAILED = frozenset({"abort", "error"})
"""What vLLM says of a request that it could not finish."""


@dataclass(slots=True)
class _Seen:
    """Of one stream so far; times are of the clock."""

    sent: float
    first: float | None = None
    last: float = 0.0
    longest: float | None = None
    events: int = 0
    prompt_tokens: int | None = None
    tokens: int | None = None
    finish: str | None = None
    texts: list[str] = field(default_factory=list)
    headers: httpx.Headers = field(default_factory=httpx.Headers)

    def add(self, told: Chunk, keep_text: bool) -> None:
        now = time.perf_counter()
        if told.text:
            if self.first is None:
                self.first = now
            else:
                self.longest = max(self.longest or 0.0, now - self.last)
            self.events += 1
            if keep_text:
                self.texts.append(told.text)
        if told.text or told.finish:
            self.last = now
        self.finish = told.finish or self.finish
        self.prompt_tokens = self.prompt_tokens if told.prompt_tokens is None else told.prompt_tokens
        self.tokens = self.tokens if told.tokens is None else told.tokens


async def ask(
    client: httpx.AsyncClient,
    target: Target,
    request: Request,
    *,
    number: int,
    due: float | None,
    start: float,
    keep_text: bool = False,
) -> Sample:
    """Whatever becomes of it. ``start`` is the clock's time from which others count; ``due`` ``None``: now."""
    seen = _Seen(time.perf_counter())
    error = await _read(client, target, request, seen, keep_text)
    ended = time.perf_counter() if error or not seen.last else seen.last
    sent = seen.sent - start
    return Sample(
        number=number,
        due=sent if due is None else due,
        sent=sent,
        ttft=None if seen.first is None else seen.first - seen.sent,
        total=ended - seen.sent,
        prompt_tokens=seen.prompt_tokens,
        tokens=seen.events if seen.tokens is None else seen.tokens,
        events=seen.events,
        longest_pause=seen.longest,
        path=seen.headers.get("x-duet-path"),
        bypass=seen.headers.get("x-duet-bypass"),
        pool=seen.headers.get("x-duet-pool"),
        text="".join(seen.texts) if keep_text else None,
        finish=seen.finish,
        error=error,
    )


async def _read(
    client: httpx.AsyncClient, target: Target, request: Request, seen: _Seen, keep_text: bool
) -> str | None:
    """What failed; its kind stands before the first colon."""
    url = f"{target.url}/v1/{request.route}"
    body = {**request.body, "model": target.model, "stream": True, "stream_options": {"include_usage": True}}
    try:
        async with aconnect_sse(
            client, "POST", url, json=body, headers={**target.headers, **request.headers}
        ) as source:
            seen.headers = source.response.headers
            if (status := source.response.status_code) != httpx.codes.OK:
                said = " ".join((await source.response.aread()).decode(errors="replace").split())
                return f"HTTP {status}: {said[:_SHOWN]}"
            is_done = False
            async for event in source.aiter_sse():  # to its end, so that the connection can be used again
                if event.data == "[DONE]":
                    is_done = True
                    continue
                told = chunk(event.data)
                if told.error is not None:
                    return f"an error in the stream: {told.error}"
                seen.add(told, keep_text)
        return _ended(seen) if is_done else "cut off: the stream ended before [DONE]"
    except httpx.TimeoutException as exc:
        return f"timeout: {type(exc).__name__}"
    except httpx.ConnectError as exc:
        return f"no connection: {exc}"
    except (httpx.HTTPError, OSError) as exc:
        return f"cut off: {type(exc).__name__} {exc}".rstrip()
    except (AttributeError, SSEError, TypeError, ValueError) as exc:
        return f"not the stream of OpenAI's API: {exc}"[:_SHOWN]


def _ended(seen: _Seen) -> str | None:
    if seen.finish is None:
        return "cut off: no finish_reason"
    return f"finish_reason {seen.finish}" if seen.finish in _FAILED else None
