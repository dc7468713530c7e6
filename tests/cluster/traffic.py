"""Clients that ask all the time, each for one stream after the other, and what became of each."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx


@dataclass
class Answer:
    """One request's."""

    prefill: str | None
    decode: str | None
    path: str | None
    status: int
    complete: bool
    """Whether it has its end, and no error in it."""
    text: str


@dataclass
class Traffic:
    """What has been answered so far."""

    client: httpx.AsyncClient
    answers: list[Answer] = field(default_factory=list)
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    async def more(self, number: int = 20) -> None:
        """Wait for so many answers more."""
        wanted = len(self.answers) + number
        async with asyncio.timeout(120):
            while len(self.answers) < wanted:
                self.progress.clear()
                await self.progress.wait()

    def hurt(self) -> list[Answer]:
        """Those that are no complete answers."""
        return [answer for answer in self.answers if not answer.complete]

    async def ask_for_ever(self, number: int, tokens: int) -> None:
        """One client."""
        turn = 0
        while True:
            turn += 1
            prompt = f"client {number} turn {turn} tells a story of several words"
            self.answers.append(await self._ask(prompt, tokens))
            self.progress.set()

    async def _ask(self, prompt: str, tokens: int) -> Answer:
        body = {"model": "fake", "prompt": prompt, "max_tokens": tokens, "stream": True}
        async with self.client.stream("POST", "/v1/completions", json=body) as answer:
            lines = [line.removeprefix("data: ") async for line in answer.aiter_lines() if line.startswith("data: ")]
        told = answer.headers
        complete = answer.status_code == 200 and lines[-1:] == ["[DONE]"]
        complete = complete and not any("error" in json.loads(line) for line in lines[:-1])
        names = (told.get("x-duet-prefill"), told.get("x-duet-decode"), told.get("x-duet-path"))
        return Answer(*names, answer.status_code, complete, "\n".join(lines[-2:]))


@asynccontextmanager
async def traffic(url: str, *, clients: int = 6, tokens: int = 25) -> AsyncIterator[Traffic]:
    """Requests all the time, until the end of the block; those in flight then are given up."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False, limits=limits) as client:
        found = Traffic(client)
        tasks = [asyncio.create_task(found.ask_for_ever(number, tokens)) for number in range(clients)]
        try:
            await found.more()
            yield found
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        lost = [error for error in results if not isinstance(error, asyncio.CancelledError)]
        assert not lost, f"clients were cut off: {lost}"
