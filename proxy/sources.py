"""Finds out how decode has to be told of a prefill instance."""

import json
from dataclasses import replace

from proxy.engine import EngineClient
from proxy.errors import EngineCut
from proxy.handoff.protocol import Source
from proxy.pool import Member
from proxy.settings import Leg
from proxy.topology import KVAddress


class Sources:
    """Asks instances whose connector's name is not in the configuration, and remembers it while they run."""

    def __init__(self, client: EngineClient, limits: Leg) -> None:
        self._client = client
        self._limits = limits

    async def of(self, prefill: Member) -> Source:
        """From what is known, or from the instance's bootstrap server; raises :class:`EngineFailure` in its name."""
        address = prefill.instance.kv
        if address is None:
            raise EngineCut(prefill.instance.name, "has no address for its KV cache in the proxy's configuration")
        if address.engine_id is not None:
            return Source(address, address.engine_id)
        if prefill.source is None:
            prefill.source = await self._ask(prefill, address)
        return prefill.source

    async def _ask(self, prefill: Member, address: KVAddress) -> Source:
        server = replace(prefill.instance, url=address.url)
        upstream = await self._client.open(server, "GET", "/query", [], None, self._limits)
        try:
            text = await upstream.read()
        finally:
            await upstream.aclose()
        try:
            rank, engine = min(json.loads(text).items(), key=lambda item: int(item[0]))
            return Source(address, str(engine["engine_id"]), int(rank))
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            detail = f"its bootstrap server {address.url} names no engine (status {upstream.status})"
            raise EngineCut(server.name, detail) from exc
