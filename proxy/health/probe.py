"""Asks one instance how it is."""

import asyncio
import json
from enum import StrEnum

from proxy.answer import json_object
from proxy.engine import EngineClient
from proxy.errors import EngineCut, EngineFailure, EngineUnreachable
from proxy.settings import Leg
from proxy.topology import Instance

_LONG = Leg(first_byte=60.0, idle=60.0)
"""An engine that has not answered by then is asked again: the machine may be gone without closing the connection."""


class NoModel(EngineCut):
    """It answers, but names no model."""

    def __init__(self, instance: str, status: int) -> None:
        super().__init__(instance, f"answered GET /v1/models with status {status} and no model")
        self.status = status


class Finding(StrEnum):
    """What was seen of an instance."""

    WELL = "well"
    SILENT = "no answer in time"
    REFUSED = "connection refused"
    SICK = "its health check fails"
    FROZEN = "it has work, but none of its counters moves"


async def probe(client: EngineClient, instance: Instance, patience: float) -> Finding:
    """Ask ``/health``, for at most so many seconds: busy engines are slow at times."""
    try:
        status, _ = await _get(client, instance, "/health", patience)
    except EngineUnreachable:
        return Finding.REFUSED
    except (EngineFailure, TimeoutError):
        return Finding.SILENT
    return Finding.WELL if status == 200 else Finding.SICK


async def metrics_of(client: EngineClient, instance: Instance, patience: float) -> str | None:
    """The text of ``/metrics``; empty when it refuses, ``None`` when it does not answer now."""
    try:
        status, body = await _get(client, instance, "/metrics", patience)
    except (EngineFailure, TimeoutError):
        return None
    if status >= 500:
        return None
    return body.decode(errors="replace") if status == 200 else ""


async def model_of(client: EngineClient, instance: Instance, patience: float) -> tuple[str, int | None]:
    """The name of the model that it serves, and the most tokens that it takes, if it says so.

    Raises :class:`EngineFailure`, for example :class:`NoModel`, or :class:`TimeoutError`.
    """
    status, body = await _get(client, instance, "/v1/models", patience)
    try:
        entries = json_object(body)["data"]
        entry = next(each for each in entries if each.get("parent") is None)  # type: ignore[attr-defined]
        name, longest = str(entry["id"]), entry.get("max_model_len")
    except (KeyError, TypeError, StopIteration, AttributeError) as exc:
        raise NoModel(instance.name, status) from exc
    return name, longest if isinstance(longest, int) else None


async def ask_for_a_token(client: EngineClient, instance: Instance) -> None:
    """A completion of one token, whichever; raises :class:`EngineFailure`, also for a refusal, which proves nothing."""
    try:
        model, _ = await model_of(client, instance, _LONG.first_byte)
    except TimeoutError as exc:
        raise EngineCut(instance.name, "did not name its model") from exc
    body = json.dumps({"model": model, "prompt": "a", "max_tokens": 1}).encode()
    headers = [(b"content-type", b"application/json")]
    answer = await client.open(instance, "POST", "/v1/completions", headers, body, _LONG)
    try:
        await answer.read()
    finally:
        await answer.aclose()
    if answer.status != 200:
        raise EngineCut(instance.name, f"answered a request for one token with status {answer.status}")


async def _get(client: EngineClient, instance: Instance, path: str, patience: float) -> tuple[int, bytes]:
    async with asyncio.timeout(patience):
        return await client.get(instance, path)
