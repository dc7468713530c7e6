"""Asks engines regularly what a baseline was asked, and notes how far they agree."""

import asyncio
import logging

from proxy.answer import json_object
from proxy.engine import EngineClient
from proxy.errors import EngineFailure
from proxy.health.probe import model_of
from proxy.pool import Member, Pool
from proxy.reference import Reference, agreed, question
from proxy.settings import Leg

logger = logging.getLogger(__name__)

_HEADERS = [(b"content-type", b"application/json")]
_PATIENCE = 30.0
"""Seconds for one answer; an engine that is too busy is asked next time."""
_LOOK = 0.5
"""Seconds between two looks for engines that have not been asked yet."""


class DriftWatch:
    """One request at a time, all engines in turn, every ``interval`` seconds; those that are new at once."""

    def __init__(self, pool: Pool, client: EngineClient, reference: Reference, interval: float) -> None:
        self._pool = pool
        self._client = client
        self._reference = reference
        self._interval = interval

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        due: dict[str, float] = {}
        while True:
            now = loop.time()
            for member in self._pool.members:
                name = member.instance.name
                if not member.usable:
                    member.agreement = None
                    due.pop(name, None)  # what comes back may have other weights
                elif due.get(name, now) <= now:
                    due[name] = now + self._interval
                    await self._ask(member)
            await asyncio.sleep(_LOOK)

    async def _ask(self, member: Member) -> None:
        name = member.instance.name
        agreeing = asked = 0
        try:
            model, _ = await model_of(self._client, member.instance, _PATIENCE)
            for answer in self._reference.answers:
                async with asyncio.timeout(_PATIENCE):
                    status, body = await self._completed(member, question(answer, model))
                if status != 200:
                    raise ValueError(f"it answered {status}")
                agreeing += agreed(answer, json_object(body))
                asked += len(answer.answer)
        except (EngineFailure, TimeoutError, ValueError) as exc:
            logger.warning("%s was not compared with the reference answers: %s", name, str(exc) or "no answer in time")
            return
        member.agreement = agreeing / asked

    async def _completed(self, member: Member, body: bytes) -> tuple[int, bytes]:
        leg = Leg(first_byte=_PATIENCE, idle=_PATIENCE)
        answer = await self._client.open(member.instance, "POST", "/v1/completions", _HEADERS, body, leg)
        try:
            return answer.status, await answer.read()
        finally:
            await answer.aclose()
