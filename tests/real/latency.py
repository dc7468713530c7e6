"""Measures requests through a running deployment (`scripts/demo`, in another terminal), one after another.

The baseline, in the same run and taking turns: the same requests sent to the decode engine alone (aggregated).
"""

import argparse
import asyncio
import statistics
import uuid
from collections.abc import Sequence

import httpx
from rich.console import Console
from rich.table import Table

from launcher.demo.question import Answer, ask

TOKENS = 16


async def main() -> None:
    """Ask, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--proxy", default="http://127.0.0.1:8000")
    parser.add_argument("--requests", type=int, default=50)
    options = parser.parse_args()
    async with httpx.AsyncClient(trust_env=False, timeout=120) as client:
        instances = (await client.get(f"{options.proxy}/ready")).json()["instances"]
        model = (await client.get(f"{options.proxy}/v1/models")).json()["data"][0]["id"]
        decode = next(instance["url"] for instance in instances if instance["role"] == "decode")
        answers: dict[str, list[Answer]] = {"through the pair": [], "decode alone": []}
        for number in range(options.requests + 1):
            for name, address in (("through the pair", options.proxy), ("decode alone", decode)):
                question = f"Tell me a story about {uuid.uuid4()}"  # no cache knows it
                answer = await ask(client, address, model, question, lambda _: None, tokens=TOKENS)
                if number:  # the first makes the connection
                    answers[name].append(answer)
    table = Table("", "TTFT p50", "TTFT max", f"{TOKENS} tokens p50", "max", "slower than 1 s", box=None)
    for name, measured in answers.items():
        total = [answer.ttft + answer.decode_time for answer in measured]
        ttft = [answer.ttft for answer in measured]
        slow = sum(seconds > 1 for seconds in total)
        table.add_row(
            name,
            *(f"{value * 1000:.0f} ms" for value in (*_middle_and_max(ttft), *_middle_and_max(total))),
            f"{slow} of {len(total)}",
        )
    Console(width=100).print(table)


def _middle_and_max(values: Sequence[float]) -> tuple[float, float]:
    return statistics.median(values), max(values)


if __name__ == "__main__":
    asyncio.run(main())
