"""A scriptable API server of Kubernetes, as far as watching pods needs one: for faults that are rare in a real one."""

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from proxy.cli import listen


class FakeApiServer:
    """Listens on a port of its own; ``pods`` by name are what it has."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.version = 1
        self.refusal: tuple[int, str] | None = None
        """Status and message of every answer."""
        self.token = "none"
        """The only one that it knows."""
        self.expired = False
        """Whether a watch is told once that its version is too old."""
        self.deaf = False
        """Whether watches hear nothing of what happens."""
        self.answers = asyncio.Event()
        """Whether anybody is answered at all."""
        self.answers.set()
        self.lists = 0
        self.watches: list[asyncio.Queue[bytes | None]] = []
        self.selectors: set[str] = set()
        self.begun = asyncio.Event()
        self._told: list[tuple[int, bytes]] = []
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, at the same port as before."""
        listener = listen("127.0.0.1", self._port)
        self._port = listener.getsockname()[1]
        app = Starlette(routes=[Route("/api/v1/namespaces/{namespace}/pods", self._pods)])
        self._server = uvicorn.Server(
            uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=2)
        )
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        self._listener = listener

    async def stop(self) -> None:
        """Cut all watches and refuse connections."""
        self.cut()
        self.answers.set()
        self._server.should_exit = True
        await self._serving
        self._listener.close()

    def kubeconfig(self, folder: Path) -> str:
        """A file by which clients find it, and its token."""
        file = folder / "kubeconfig"
        named = [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{self._port}"}}]
        context = {"cluster": "fake", "user": "fake", "namespace": "llm"}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": named,
            "users": [{"name": "fake", "user": {"token": self.token}}],
            "contexts": [{"name": "fake", "context": context}],
            "current-context": "fake",
        }
        file.write_text(yaml.safe_dump(document))
        return str(file)

    def put(self, pod: dict[str, Any]) -> None:
        """Add or change a pod."""
        name = pod["metadata"]["name"]
        kind = "MODIFIED" if name in self.pods else "ADDED"
        self.pods[name] = pod
        self._tell(kind, pod)

    def delete(self, name: str) -> None:
        """It is gone."""
        self._tell("DELETED", self.pods.pop(name))

    def cut(self) -> None:
        """End all watches in the middle."""
        for watch in self.watches:
            watch.put_nowait(None)

    def _tell(self, kind: str, pod: dict[str, Any]) -> None:
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        if not self.deaf:
            line = json.dumps({"type": kind, "object": pod}).encode() + b"\n"
            self._told.append((self.version, line))
            for watch in self.watches:
                watch.put_nowait(line)

    async def _pods(self, request: Request) -> Response:
        await self.answers.wait()
        self.selectors.add(request.query_params["labelSelector"])
        if self.refusal is not None:
            status, message = self.refusal
            return JSONResponse({"kind": "Status", "message": message, "code": status}, status)
        if request.headers["authorization"] != f"Bearer {self.token}":
            return JSONResponse({"kind": "Status", "message": "Unauthorized", "code": 401}, 401)
        if "watch" in request.query_params:
            since, within = int(request.query_params["resourceVersion"]), request.query_params["timeoutSeconds"]
            return StreamingResponse(self._watch(since, float(within)))
        self.lists += 1
        metadata = {"resourceVersion": str(self.version)}
        return JSONResponse({"kind": "PodList", "metadata": metadata, "items": list(copy.deepcopy(self.pods).values())})

    async def _watch(self, since: int, within: float) -> AsyncIterator[bytes]:
        mine: asyncio.Queue[bytes | None] = asyncio.Queue()
        for version, line in self._told:
            if version > since:
                mine.put_nowait(line)
        self.watches.append(mine)
        self.begun.set()
        try:
            if self.expired:
                self.expired = False
                yield json.dumps({"type": "ERROR", "object": {"code": 410, "message": "too old"}}).encode() + b"\n"
            async with asyncio.timeout(within):
                while (line := await mine.get()) is not None:
                    half = len(line) // 2
                    yield line[:half]
                    yield line[half:]
        except TimeoutError:
            return
        finally:
            self.watches.remove(mine)
