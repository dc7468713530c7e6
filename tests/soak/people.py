"""The clients of a soak: what they ask, and what they make of the answers."""

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

import httpx

from tests.fakes import completions

DEADLINE = 25.0
"""Seconds in which every request must have ended; more than all limits of the proxy together."""
_ERROR_STATUSES = {429, 500, 502, 503, 504}


@dataclass
class Findings:
    """What all clients saw."""

    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    sent: int = 0
    left: int = 0
    """Requests whose client left before the end; the proxy may not have seen all of them."""


async def live(url: str, chance: random.Random, findings: Findings, until: asyncio.Event) -> None:
    """Ask one thing after the other."""
    async with httpx.AsyncClient(base_url=url, timeout=None, trust_env=False) as client:
        while not until.is_set():
            await _ask(client, chance, findings)


async def _ask(client: httpx.AsyncClient, chance: random.Random, findings: Findings) -> None:
    body = _question(chance)
    patience = chance.uniform(0.0, 0.5) if chance.random() < 0.15 else None
    findings.sent += 1
    try:
        async with asyncio.timeout(DEADLINE if patience is None else patience):
            outcome = await _outcome(client, body)
    except TimeoutError:
        if patience is None:
            findings.violations.append(f"hung, noticed at {datetime.now():%H:%M:%S}: {body}")
        findings.left += 1
        outcome = "left"
    except httpx.HTTPError as exc:
        findings.violations.append(f"{type(exc).__name__}: {body}")
        outcome = "connection broke"
    findings.outcomes[outcome.partition(":")[0]] += 1
    if outcome.startswith("WRONG"):
        findings.violations.append(f"{outcome}: {body}")


def _question(chance: random.Random) -> dict:
    words = " ".join(chance.choice(("sun", "moon", "star", "sky")) for _ in range(chance.randint(1, 40)))
    body = {"model": "fake", "prompt": words, "max_tokens": chance.randint(1, 60), "stream": chance.random() < 0.7}
    kind = chance.random()
    if kind < 0.05:
        body["model"] = "none"
    elif kind < 0.1:
        body["n"] = 2
    return body


async def _outcome(client: httpx.AsyncClient, body: dict) -> str:
    async with client.stream("POST", "/v1/completions", json=body) as answer:
        content = await answer.aread()
    if answer.status_code == 404 and body["model"] == "none":
        return "404 as it should be"
    if answer.status_code in _ERROR_STATUSES:
        error = json.loads(content)["error"]
        if answer.status_code == 429 and "retry-after" not in answer.headers:
            return "WRONG: 429 without Retry-After"
        return f"error {answer.status_code}" if error["message"] else f"WRONG: {content!r}"
    if answer.status_code != 200 or body["model"] == "none":
        return f"WRONG: status {answer.status_code}"
    return _judge_stream(content, body) if body["stream"] else _judge_whole(content, body)


def _judge_whole(content: bytes, body: dict) -> str:
    texts = [choice["text"] for choice in json.loads(content)["choices"]]
    return "whole answer" if texts == _expected(body) else f"WRONG: text {texts}"


def _judge_stream(content: bytes, body: dict) -> str:
    events = [event.removeprefix("data: ") for event in content.decode().split("\n\n") if event]
    texts = [""] * body.get("n", 1)
    for event in events:
        if event == "[DONE]":
            continue
        document = json.loads(event)
        if "error" in document:
            return "stream with an error event" if event is events[-1] else "WRONG: more after the error event"
        for choice in document["choices"]:
            texts[choice["index"]] += choice["text"]
    if not events or events[-1] != "[DONE]":
        return "WRONG: a stream without an end"
    return "whole stream" if texts == _expected(body) else f"WRONG: text {texts}"


def _expected(body: dict) -> list[str]:
    return ["".join(choice.texts) for choice in completions.choices_of(body, False)]
