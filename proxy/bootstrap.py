"""Asks a prefill instance's bootstrap server who it is."""

import json
from dataclasses import replace

from proxy.engine import EngineClient
from proxy.errors import EngineCut
from proxy.handoff.protocol import Source
from proxy.settings import Leg
from proxy.topology import Instance


class Bootstrap:
    """Of connectors that have such a server (Mooncake's)."""

    def __init__(self, client: EngineClient, limits: Leg) -> None:
        self._client = client
        self._limits = limits

    async def source(self, prefill: Instance) -> Source:
        """What its server tells; raises :class:`EngineFailure` in the instance's name."""
        if prefill.bootstrap is None:
            raise EngineCut(prefill.name, "has no bootstrap server in the proxy's configuration")
        server = replace(prefill, url=prefill.bootstrap)
        status, text = await self._client.get(server, "/query", self._limits)
        try:
            rank, engine = min(json.loads(text).items(), key=lambda item: int(item[0]))
            name = str(engine["engine_id"])
            return Source(name, {"remote_engine_id": name, "remote_bootstrap_addr": prefill.bootstrap}, int(rank))
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            detail = f"its bootstrap server {prefill.bootstrap} names no engine (status {status})"
            raise EngineCut(prefill.name, detail) from exc
