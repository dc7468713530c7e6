"""Measures this proxy against others in one run, taking turns: `scripts/bench-proxy`.

Stub engines and load generator (C, built here) run on one core, the contender on another. For each case and contender:
requests/s, CPU time of the contender per request and per streamed event, and latency, as the median over the rounds.
"""

import argparse
import json
import platform
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.bench.cases import CASES, PATH, Case
from tests.bench.contenders import CONTENDERS, VLLM_ROUTER
from tests.bench.watch import Watch
from tests.ports import free_port

HERE = Path(__file__).parent
DIRECT = "stub directly"


@dataclass(frozen=True, slots=True)
class Sample:
    """One contender, one case, one round."""

    requests_per_second: float
    errors: int
    cpu: float
    """Microseconds of the contender's CPU time per request."""
    p50: float
    p95: float
    p99: float
    """Milliseconds of whole requests."""
    memory: float
    """MiB resident at the worst."""
    per_connection: float
    """KiB resident at the worst, less those before the load, for each connection."""
    health: float
    """The slowest answer of ``/health`` under the load, in milliseconds."""


class Bench:
    """The built programs and the running stubs."""

    def __init__(self, folder: Path, cores: Sequence[int], seconds: float) -> None:
        self.folder = folder
        self._load_core, self._contender_core = cores[0], cores[-1]
        self._seconds = seconds
        for name in ("stub", "load"):
            subprocess.run(["cc", "-O2", "-o", str(folder / name), str(HERE / f"{name}.c")], check=True)

    @contextmanager
    def stub(self, interval: int) -> Iterator[int]:
        """A stub engine; its port."""
        port = free_port()
        with self._running([str(self.folder / "stub"), str(port), str(interval)], self._load_core, port):
            yield port

    @contextmanager
    def contender(self, name: str, prefill: int, decode: int) -> Iterator[tuple[int, psutil.Process]]:
        """A running contender; its port and process."""
        port = free_port()
        urls = (f"http://127.0.0.1:{prefill}", f"http://127.0.0.1:{decode}")
        with self._running(CONTENDERS[name](port, *urls, self.folder), self._contender_core, port) as process:
            yield port, process

    def measure(self, case: Case, port: int, process: psutil.Process | None) -> Sample:
        """Put one case's load on a port."""
        before = cpu_seconds(process)
        command = [str(self.folder / "load"), str(port), str(case.connections), str(self._seconds), PATH]
        with Watch(port, family(process)) if process else nullcontext() as watch:
            done = subprocess.run(pinned(self._load_core, command), input=case.body, capture_output=True, check=True)
        found = json.loads(done.stdout)
        used = cpu_seconds(process) - before
        requests = max(1, found["requests"])
        peak, more, health = (watch.peak, watch.peak - watch.before, watch.health) if watch else (0.0, 0.0, 0.0)
        return Sample(
            found["in_time"] / found["seconds"],
            found["errors"],
            used / requests * 1e6,
            found["p50"],
            found["p95"],
            found["p99"],
            peak,
            more * 1024 / case.connections,
            health,
        )

    @contextmanager
    def _running(self, command: list[str], core: int, port: int) -> Iterator[psutil.Process]:
        with (self.folder / f"{port}.log").open("wb") as log:
            process = subprocess.Popen(pinned(core, command), stdout=log, stderr=log)
        try:
            wait_for(port, process)
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(20)


def pinned(core: int, command: list[str]) -> list[str]:
    """The command on one core."""
    return ["taskset", "--cpu-list", str(core), *command]


def wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Until somebody listens; raises when the process ended instead."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                time.sleep(0.5)  # some look at their engines only after they listen
                return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} does not listen on {port}")


def family(process: psutil.Process | None) -> list[psutil.Process]:
    """A contender and its children."""
    return [] if process is None else [process, *process.children(recursive=True)]


def cpu_seconds(process: psutil.Process | None) -> float:
    """Used so far by a contender and its children."""
    return sum(sum(each.cpu_times()[:2]) for each in family(process))


def run(bench: Bench, names: Sequence[str], cases: Sequence[Case], rounds: int) -> dict[tuple[str, str], list[Sample]]:
    """All samples by case and contender; contenders take turns within each round."""
    samples: dict[tuple[str, str], list[Sample]] = {}
    with ExitStack() as running:
        decodes = {pace: running.enter_context(bench.stub(pace)) for pace in sorted({case.pace for case in cases})}
        prefill = running.enter_context(bench.stub(0))
        for _ in range(rounds):
            for case in cases:
                decode = decodes[case.pace]
                samples.setdefault((case.name, DIRECT), []).append(bench.measure(case, decode, None))
                for name in names:
                    with bench.contender(name, prefill, decode) as (port, process):
                        samples.setdefault((case.name, name), []).append(bench.measure(case, port, process))
    return samples


def table(samples: dict[tuple[str, str], list[Sample]], cases: Sequence[Case]) -> str:
    """Markdown."""
    rows = [
        "| case | who | requests/s | CPU µs/request | CPU µs/event | p50 ms | p95 ms | p99 ms "
        "| MiB | KiB/connection | /health ms | errors |"
    ]
    rows.append("| --- | --- |" + " ---: |" * 10)
    by_case = {case.name: case for case in cases}
    for (case, name), taken in samples.items():

        def middle(field: str, taken: list[Sample] = taken) -> float:
            return statistics.median(getattr(sample, field) for sample in taken)

        events = by_case[case].events
        cpu = "" if name == DIRECT else f"{middle('cpu'):.0f}"
        per_event = f"{middle('cpu') / events:.1f}" if cpu and events else ""
        watched = [f"{middle('memory'):.0f}", f"{middle('per_connection'):.0f}", f"{middle('health'):.1f}"]
        memory = " | ".join(watched if name != DIRECT else [""] * 3)
        errors = sum(sample.errors for sample in taken)
        rows.append(
            f"| {case} | {name} | {middle('requests_per_second'):.0f} | {cpu} | {per_event} | {middle('p50'):.2f} "
            f"| {middle('p95'):.2f} | {middle('p99'):.2f} | {memory} | {errors} |"
        )
    return "\n".join(rows) + "\n"


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="per case and contender")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--who", default="", help="only contenders whose name contains this")
    parser.add_argument("--to", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    cases = [case for case in CASES if options.case in case.name]
    cores = sorted(psutil.Process().cpu_affinity() or [0])
    there = [name for name in CONTENDERS if name != "vllm-router" or VLLM_ROUTER.exists()]
    names = [name for name in there if options.who in name]
    with tempfile.TemporaryDirectory() as folder:
        samples = run(Bench(Path(folder), cores, options.seconds), names, cases, options.rounds)
    where = f"{platform.processor() or platform.machine()}, {len(cores)} cores, Python {platform.python_version()}"
    text = f"{options.rounds} rounds of {options.seconds:.0f} s; {where}.\n\n{table(samples, cases)}"
    print(text)  # noqa: T201
    if options.to:
        options.to.write_text(text)


if __name__ == "__main__":
    main()
