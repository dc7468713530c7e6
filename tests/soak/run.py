"""Serves for minutes while engines die, freeze and come back and clients leave: `scripts/soak`.

It fails when a request hangs, breaks without an error, or is answered wrongly; when the proxy's counters do not add up
to what the clients sent; and when its memory or its open files grow.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from tests.soak.city import City
from tests.soak.people import Findings, live

_GROWTH = 1.05
"""Of the median memory from the second fifth of the time to the last."""
_SPARE = 4 * 2**20
_OPEN_FILES = 64
"""More than listener, logs and kept connections need when nothing runs."""


def main() -> int:
    """Run; 0 when nothing was found."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1, help="of what is asked and disturbed; not of how it turns out")
    parser.add_argument("--logs", type=Path, help="keep the logs in this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="duet-soak-") as temporary:
        folder = arguments.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        problems = asyncio.run(soak(folder, arguments.minutes * 60, arguments.clients, arguments.seed))
    for problem in problems[:20]:
        sys.stdout.write(f"PROBLEM {problem}\n")
    return 1 if problems else 0


async def soak(folder: Path, seconds: float, clients: int, seed: int) -> list[str]:
    """The problems that were found."""
    city, findings, memory = City(folder), Findings(), [0.0]
    await city.build()
    try:
        await _ready(city.url)
        memory = await _serve(city, findings, seconds, clients, seed)
        problems = findings.violations + await _settled(city, findings)
    finally:
        status = await city.tear_down()
    problems += _grown(memory)
    if status not in (0, -15):
        problems.append(f"the proxy ended with status {status}")
    if "Traceback" in (folder / "proxy.log").read_text(errors="replace"):
        problems.append("a traceback is in the proxy's log")
    _report(city, findings, memory, seconds)
    return problems


async def _serve(city: City, findings: Findings, seconds: float, clients: int, seed: int) -> list[float]:
    over, memory = asyncio.Event(), []
    async with asyncio.TaskGroup() as tasks:
        for number in range(clients):
            tasks.create_task(live(city.url, random.Random(seed * 1000 + number), findings, over))
        disturbing = tasks.create_task(city.disturb(random.Random(seed)))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            memory.append(float(city.proxy.memory_info().rss))
            await asyncio.sleep(min(1.0, seconds / 20))
        over.set()
        disturbing.cancel()
    return memory


async def _ready(url: str) -> None:
    async with httpx.AsyncClient(base_url=url, trust_env=False) as client, asyncio.timeout(60):
        while True:
            try:
                modes = (await client.get("/ready")).json()["modes"]
                if modes["pd"]:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)


async def _settled(city: City, findings: Findings) -> list[str]:
    """What is not as it should be when nothing runs any more."""
    problems = []
    await _ready(city.url)
    async with httpx.AsyncClient(base_url=city.url, trust_env=False) as client:
        metrics = (await client.get("/metrics")).text
    samples = [sample for family in text_string_to_metric_families(metrics) for sample in family.samples]
    counted = sum(s.value for s in samples if s.name == "duet_requests_total")
    if not findings.sent - findings.left <= counted <= findings.sent:
        problems.append(f"{counted:.0f} requests counted, {findings.sent} sent ({findings.left} of their clients left)")
    problems += [f"in flight on {s.labels}" for s in samples if s.name == "duet_in_flight" and s.value]
    files = city.proxy.num_fds()
    if files > _OPEN_FILES:
        problems.append(f"{files} open files")
    return problems


def _grown(memory: list[float]) -> list[str]:
    fifth = len(memory) // 5
    before, after = statistics.median(memory[fifth : 2 * fifth] or memory), statistics.median(memory[-fifth:])
    if after > before * _GROWTH + _SPARE:
        return [f"memory grew from {before / 2**20:.1f} to {after / 2**20:.1f} MiB"]
    return []


def _report(city: City, findings: Findings, memory: list[float], seconds: float) -> None:
    table = Table(title=f"{findings.sent} requests in {seconds:.0f} s", show_header=False)
    for outcome, count in findings.outcomes.most_common():
        table.add_row(outcome, str(count))
    table.add_section()
    for kind, count in sorted(city.disturbances.items()):
        table.add_row(f"engines: {kind}", str(count))
    table.add_section()
    table.add_row("memory of the proxy", f"{min(memory) / 2**20:.1f} to {max(memory) / 2**20:.1f} MiB")
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
