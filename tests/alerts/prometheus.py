"""A real Prometheus on a port and in a folder of its own, that scrapes as docs/monitoring.md says."""

import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.alerts.rules import FILE, ROOT

_DOCUMENT = ROOT / "docs/monitoring.md"
_UNITS = {"s": 1, "m": 60, "h": 3600}
_START_BUDGET = 60
_INTERVAL, _EVALUATION = "2s", "1s"
"""No shorter, as a scrape may take no longer: machines that test are busy, and one that fails begins delays anew."""


@dataclass(frozen=True)
class Prometheus:
    """A running one."""

    client: httpx.Client

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The series of a query, as they are now."""
        answer = self.client.get("/api/v1/query", params={"query": query})
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]["result"]

    def firing(self) -> list[dict[str, str]]:
        """Labels of the alerts that fire."""
        alerts = self.client.get("/api/v1/alerts").json()["data"]["alerts"]
        return [alert["labels"] for alert in alerts if alert["state"] == "firing"]


def documented() -> dict[str, Any]:
    """The configuration that docs/monitoring.md shows."""
    (text,) = re.findall(r"```yaml\n(# prometheus.yml\n.*?)```", _DOCUMENT.read_text(), re.DOTALL)
    return yaml.safe_load(text)


def configuration(proxies: Mapping[str, str], rules: Path) -> dict[str, Any]:
    """The documented one, for these proxies: the address (host and port) of each job."""
    document = documented()
    (scrape,) = document["scrape_configs"]
    jobs = []
    for job, address in proxies.items():
        static = [{**each, "targets": [address]} for each in scrape["static_configs"]]
        jobs.append({**scrape, "job_name": job, "static_configs": static})
    times = {"scrape_interval": _INTERVAL, "scrape_timeout": _INTERVAL, "evaluation_interval": _EVALUATION}
    return {**document, "global": times, "rule_files": [str(rules)], "scrape_configs": jobs}


def shortened(by: int) -> str:
    """The file of rules with all its times divided, and nothing else changed."""

    def shorter(found: re.Match[str]) -> str:
        return f"{int(found[1]) * _UNITS[found[2]] * 1000 // by}ms"

    return re.sub(r"(?<!\w)(\d+)([smh])\b", shorter, FILE.read_text())


@contextmanager
def running(proxies: Mapping[str, str], folder: Path, *, faster: int) -> Iterator[Prometheus]:
    """Starts one, with the rules' times divided by ``faster``; the end kills it."""
    rules, file = folder / "alerts.yaml", folder / "prometheus.yml"
    rules.write_text(shortened(faster))
    file.write_text(yaml.safe_dump(configuration(proxies, rules)))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--query.lookback-delta={300_000 // faster}ms",
    ]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(["prometheus", *options], stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=10) as client:
            until = time.monotonic() + _START_BUDGET
            while not _is_ready(client):
                said = (folder / "prometheus.log").read_text()
                assert process.poll() is None, said
                assert time.monotonic() < until, said
            yield Prometheus(client)
    finally:
        process.kill()
        process.wait()


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").status_code == 200
    except httpx.TransportError:
        return False
