"""A deployment of two aggregated engines that look n-grams up, clients whose workload changes, and the controller."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import yaml

from tests.launcher.local.deployments import REPOSITORY, Launched, launched, wait_until

PROXY, ENGINES = 18400, 18410
_K = 4


def profile(model: Mapping[str, object], folder: Path) -> Path:
    """Two engines with one core each."""
    content = {
        "description": "Two engines that look n-grams up",
        "device": "cpu",
        "model": {**model, "served_name": "model", "max_model_len": 1024},
        "roles": {"aggregated": {"replicas": 2, "kv_cache_memory": "256MiB", "enforce_eager": True}},
        "speculation": {
            "method": "ngram",
            "num_speculative_tokens": _K,
            "prompt_lookup_max": 4,
            "prompt_lookup_min": 1,
            "report_acceptance": True,
        },
        "proxy": {"port": PROXY},
        "ports": {"engine": ENGINES},
        "startup_timeout": 240,
    }
    path = folder / "controlled.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


@dataclass
class Clients:
    """Each sends its next request when the last one is answered."""

    bodies: list[dict]
    """What they ask, in turn; may be exchanged at any time."""
    statuses: list[int] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    """``finish_reason`` of each answer."""

    @contextmanager
    def at_work(self, number: int) -> Iterator[None]:
        """While the block runs."""
        enough = threading.Event()

        def work() -> None:
            with httpx.Client(trust_env=False, timeout=120) as client:
                while not enough.is_set():
                    body = self.bodies[len(self.statuses) % len(self.bodies)]
                    answer = client.post(f"http://127.0.0.1:{PROXY}/v1/chat/completions", json=body)
                    self.statuses.append(answer.status_code)
                    if answer.is_success:
                        self.ends.append(answer.json()["choices"][0]["finish_reason"])

        threads = [threading.Thread(target=work) for _ in range(number)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            enough.set()
            for thread in threads:
                thread.join()


@dataclass(frozen=True)
class Controlled:
    """What runs."""

    running: Launched
    output: Path
    """Of the controller."""

    def ks(self) -> set[int]:
        """Draft tokens by step that the engines were started with, by their own command lines."""
        plan = json.loads((self.running.run_directory / "plan.json").read_text())
        texts = [
            engine["argv"][engine["argv"].index("--speculative-config") + 1]
            if "--speculative-config" in engine["argv"]
            else "{}"
            for engine in plan["engines"]
        ]
        return {json.loads(text).get("num_speculative_tokens", 0) for text in texts}

    def decisions(self) -> list[dict]:
        """All so far."""
        file = self.running.run_directory / "speculation.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def wait_for(self, ks: set[int], patience: float) -> None:
        """Until all engines have such a K and no trial runs."""

        def reached() -> bool:
            decided = self.decisions()
            return self.ks() == ks and bool(decided) and decided[-1]["state"]["trial"] is None

        wait_until(reached, self.output.read_text, patience)


@contextmanager
def controlled(path: Path, folder: Path, *options: str) -> Iterator[Controlled]:
    """The profile of :func:`profile`, served and under the controller."""
    with ExitStack() as stack:
        running = stack.enter_context(launched(["up", str(path)], folder / "run", {}, folder / "launcher"))
        running.wait_ready(240)
        output = folder / "controller"
        process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "launcher", "operate", "speculation", "--run-dir", str(folder / "run")),
                *options,
            ],
            stdout=stack.enter_context(output.open("w")),
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"},
        )
        try:
            yield Controlled(running, output)
            assert process.poll() is None, output.read_text()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(120)
