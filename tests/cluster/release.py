"""One installation of the chart in a namespace of its own."""

import asyncio
import json
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.cluster.site import REPOSITORY, Refused, Site
from tests.ports import free_port

CHART = str(REPOSITORY / "helm")
PATIENCE = 120.0
"""Seconds for what a cluster does on a busy machine; nothing waits longer than it has to."""


class Release:
    """Of the name ``pd``."""

    def __init__(self, site: Site, namespace: str, folder: Path) -> None:
        """``folder``: for files of values."""
        self.site, self.namespace, self._folder = site, namespace, folder
        self.by = "helm3"
        """Or ``helm4``: what installs it."""
        self._forwards = ExitStack()

    def install(self, values: dict[str, Any], *, wait: bool = True) -> None:
        """Or upgrade; with ``wait`` until all is ready."""
        file = self._folder / f"values-{time.monotonic_ns()}.json"
        file.write_text(json.dumps(values))
        self.helm("upgrade", "pd", CHART, "--install", "--values", str(file))
        if wait:
            self.rolled_out()

    def rolled_out(self, patience: float = PATIENCE) -> None:
        """Wait for all of it, each for so many seconds.

        Helm's own --wait does not: where one of one may be away, none is enough for it.
        """
        for deployment in self.site.get("deployments", "--namespace", self.namespace)["items"]:
            name = deployment["metadata"]["name"]
            try:
                self.kubectl("rollout", "status", f"deployment/{name}", f"--timeout={patience:.0f}s")
            except Refused as exc:
                of_it = f"app.kubernetes.io/component={name.removeprefix('pd-')}"
                pods, log = (
                    self.kubectl("describe", "pods", "-l", of_it),
                    self.kubectl("logs", "-l", of_it, "--tail=30"),
                )
                raise Refused(f"{exc}\n{pods}\n{log}") from exc

    def helm(self, *arguments: str) -> str:
        """Its output."""
        return self.site.run(self.by, *arguments, "--namespace", self.namespace)

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Its output."""
        return self.site.run("kubectl", "--namespace", self.namespace, *arguments, text=text)

    def pods(self, component: str) -> list[dict[str, Any]]:
        """Of a role or of the proxy, those that are to end included."""
        labels = f"app.kubernetes.io/instance=pd,app.kubernetes.io/component={component}"
        found: list[dict[str, Any]] = self.site.get("pods", "--namespace", self.namespace, "-l", labels)["items"]
        return found

    def names(self, component: str) -> list[str]:
        """Of pods that are not to end."""
        return [p["metadata"]["name"] for p in self.pods(component) if "deletionTimestamp" not in p["metadata"]]

    def url(self) -> str:
        """Of the proxy's Service; from outside of the cluster it is forwarded to, until :meth:`close`."""
        service = self.site.get("service", "pd-proxy", "--namespace", self.namespace)["spec"]
        port = service["ports"][0]["port"]
        if self.site.program is not None:
            return f"http://{service['clusterIP']}:{port}"
        mine = free_port()
        command = self.site.command("kubectl", "--namespace", self.namespace, "port-forward", "service/pd-proxy")
        process = subprocess.Popen([*command, f"{mine}:{port}"], stdout=subprocess.PIPE, text=True)
        self._forwards.callback(_end, process)
        assert process.stdout is not None
        assert "Forwarding" in process.stdout.readline()
        return f"http://127.0.0.1:{mine}"

    def close(self) -> None:
        """Forward no more."""
        self._forwards.close()

    async def hands_over(self, client: httpx.AsyncClient, pairs: int = 1) -> None:
        """Wait until so many pairs get requests."""

        async def working() -> int:
            rows = (await client.get("/pairs")).json()["pairs"]
            return sum(row["gets_requests"] for row in rows)

        await self.until(working, pairs, "pairs that get requests")

    async def until(self, ask: Callable[[], Awaitable[Any]], answer: Any, what: str) -> None:
        """Ask until the answer is as expected; a :class:`AssertionError` tells the last one."""
        deadline, found = time.monotonic() + PATIENCE, None
        while True:
            with suppress(httpx.TransportError, Refused):
                found = await ask()
            if found == answer:
                return
            said = f"{what}: {found!r} and not {answer!r} after {PATIENCE:.0f} s"
            assert time.monotonic() < deadline, f"{said}\n{self.kubectl('get', 'pods')}"
            await asyncio.sleep(0.1)


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    process.communicate(timeout=20)
