"""Stands before a real prefill engine and changes the KV parameters in its answers, or holds the answers up."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx

from tests.fakes.wire import Reply, Seen, WireServer

Change = Callable[[dict], dict]


class Relay:
    """An HTTP server that passes on to ``engine``; ``change`` gets the KV parameters of each answer that has them."""

    def __init__(self, engine: str) -> None:
        self.change: Change = dict
        self.hold = 0.0
        """Seconds until an answer with KV parameters is passed on."""
        self.answered = asyncio.Event()
        """Set when prefill has answered with KV parameters."""
        self._client = httpx.AsyncClient(base_url=engine, timeout=60, trust_env=False)
        self._server = WireServer(self._answer, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        """The base address."""
        return f"http://127.0.0.1:{self._server.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Relay"]:
        """While the block runs."""
        await self._server.start()
        try:
            yield self
        finally:
            await self._server.stop()
            await self._client.aclose()

    async def _answer(self, seen: Seen, reply: Reply) -> None:
        headers = {name: value for name, value in seen.headers if name in ("content-type", "x-request-id")}
        answer = await self._client.request(seen.method, seen.path, content=seen.body, headers=headers)
        body = answer.content
        if b'"kv_transfer_params":{' in body:
            document = json.loads(body)
            document["kv_transfer_params"] = self.change(document["kv_transfer_params"])
            body = json.dumps(document).encode()
            self.answered.set()
            await asyncio.sleep(self.hold)
        await reply.whole(answer.status_code, body, {"content-type": answer.headers.get("content-type", "text/plain")})
