"""What is measured: bodies, concurrency, pace."""

import json
from dataclasses import dataclass

PATH = "/v1/chat/completions"
WORDS = "The quick brown fox jumps over the lazy dog and runs into the dark forest. "


@dataclass(frozen=True, slots=True)
class Case:
    """One load."""

    name: str
    connections: int
    body: bytes
    events: int = 0
    """Of each streamed answer."""
    pace: int = 0
    """Milliseconds between two events of a stream; 0: all at once."""


def _body(*, prompt: int = 900, stream: bool = False, max_tokens: int = 20) -> bytes:
    text = (WORDS * (prompt // len(WORDS) + 1))[:prompt]
    document = {"model": "stub", "messages": [{"role": "user", "content": text}], "max_tokens": max_tokens}
    return json.dumps(document | {"stream": True} if stream else document).encode()


CASES = (
    *(Case(f"JSON, {n} clients", n, _body()) for n in (1, 32, 256)),
    *(Case(f"SSE of 20 events, {n} clients", n, _body(stream=True), 20) for n in (1, 32, 256)),
    *(
        Case(f"{n} streams of 100 events, 10 ms apart", n, _body(stream=True, max_tokens=100), 100, 10)
        for n in (64, 256)
    ),
    Case("2000 streams of 40 events, 100 ms apart", 2000, _body(stream=True, max_tokens=40), 40, 100),
    Case("JSON, prompt of 400 kB, 8 clients", 8, _body(prompt=400_000)),
)
