"""Asks one instance how it is."""

import asyncio
from enum import StrEnum

from proxy.engine import EngineClient
from proxy.errors import EngineFailure, EngineUnreachable
from proxy.settings import Leg
from proxy.topology import Instance


class Finding(StrEnum):
    """What a probe saw."""

    WELL = "well"
    SILENT = "no answer in time"
    """Busy engines are slow at times, so one such probe proves nothing."""
    REFUSED = "connection refused"
    SICK = "its health check fails"


async def probe(client: EngineClient, instance: Instance, timeout: float) -> Finding:
    """Ask ``/health``, for at most ``timeout`` seconds."""
    try:
        async with asyncio.timeout(timeout):
            answer = await client.open(instance, "GET", "/health", [], None, Leg())
            try:
                await answer.read()
            finally:
                await answer.aclose()
    except EngineUnreachable:
        return Finding.REFUSED
    except (EngineFailure, TimeoutError):
        return Finding.SILENT
    return Finding.WELL if answer.status == 200 else Finding.SICK
