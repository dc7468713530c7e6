"""Gives KV back that prefill keeps and nobody takes over, in the background.

vLLM has no call for that. But an engine that refuses a request before it is admitted tells prefill at once to free the
KV that the request was to take over. So a decode instance is asked for what it must refuse (``release_body`` of the
hand-offs).

KV that a decode instance was asked to take is never given back here: it may be reading, and prefill would write other
requests' KV where it reads. When the connection to it is closed, it tells prefill itself, if it has seen the request by
then. That takes a moment, which a client that leaves does not grant: so requests that were just sent are cut off later.
"""

import asyncio
import logging
from collections.abc import Coroutine

from proxy.engine import EngineClient, Pending, Upstream
from proxy.errors import EngineFailure
from proxy.handoff.protocol import Sequential
from proxy.headers import RawHeaders, value_of
from proxy.metrics import Metrics
from proxy.pool import Member, Pool
from proxy.settings import Leg
from proxy.topology import Role

logger = logging.getLogger(__name__)

MOST_TASKS = 256
LAST_RELEASES = 1.0
"""Seconds for those that run at the end."""
PREFILL_PATIENCE = 0.8
"""Seconds that prefill gets to end when its client has left: the KV of an answer that nobody reads stays."""
DECODE_PATIENCE = 0.25
"""Seconds that decode gets to see a request whose client has left: one that it has not read frees nothing."""
_LIMITS = Leg(connect=1.0, first_byte=5.0, idle=5.0)
_PATH = "/v1/completions"


class Kept:
    """What prefill keeps for one request, and whether somebody was asked to take it."""

    def __init__(self, releases: "Releases", handoff: Sequential, prefill: Member, headers: RawHeaders) -> None:
        self.handoff = handoff
        self.prefill = prefill
        self.headers = headers
        self._releases = releases
        self._asked = False

    def sent(self) -> None:
        """A decode instance is about to be sent the request."""
        self._asked = True

    def left_at_prefill(self, answer: Pending | Upstream) -> None:
        """The client has left before prefill's answer was there."""
        self._releases.begin(self._releases.after_prefill(self, answer))

    def left_at_decode(self, answer: Pending | Upstream) -> None:
        """The client has left before decode said anything."""
        self._releases.begin(self._releases.after_decode(answer))

    def give_back(self, document: bytes) -> None:
        """Unless somebody was asked to take it; ``document`` has the KV parameters."""
        if not self._asked:
            self._releases.begin(self._releases.release(self, document))


class Releases:
    """All that run. They end with :meth:`aclose`."""

    def __init__(self, pool: Pool, client: EngineClient, metrics: Metrics) -> None:
        self._pool = pool
        self._client = client
        self._metrics = metrics
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Run something in the background."""
        task = asyncio.create_task(work, name="release of KV")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def release(self, kept: Kept, document: bytes) -> None:
        """Ask one decode instance after the other, first those to which KV was handed over from there."""
        body = kept.handoff.release_body(document)
        if body is None:
            return
        try:
            # More than that is no accident of a few clients; it must not become a load of its own.
            decodes = self._decodes(kept.prefill) if len(self._tasks) <= MOST_TASKS else []
            for decode in decodes:
                if await self._refuses(decode, kept, body):
                    self._metrics.kv_released.inc()
                    return
        except asyncio.CancelledError:
            self._metrics.kv_stranded.inc()
            raise
        logger.warning("%s keeps KV until its lease ends: no decode instance frees it", kept.prefill.instance.name)
        self._metrics.kv_stranded.inc()

    async def after_prefill(self, kept: Kept, answer: Pending | Upstream) -> None:
        """Give back what it answers within its patience; of a request that is cut off it keeps nothing."""
        upstream: Upstream | None = None
        try:
            async with asyncio.timeout(PREFILL_PATIENCE):
                upstream = answer if isinstance(answer, Upstream) else await answer.answer()
                document = await upstream.read()
        except (TimeoutError, EngineFailure):
            return
        finally:
            await (answer if upstream is None else upstream).aclose()
        if upstream.status == 200:
            await self.release(kept, document)

    async def after_decode(self, answer: Pending | Upstream) -> None:
        """Cut it off when it is sure to have seen the request."""
        try:
            await asyncio.sleep(DECODE_PATIENCE)
        finally:
            await answer.aclose()

    async def aclose(self) -> None:
        """Let those that run end, for a moment."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=LAST_RELEASES)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _decodes(self, prefill: Member) -> list[Member]:
        """Also those that drain: it is no work."""
        pool = prefill.instance.pool
        decodes = [each for each in self._pool.members if each.instance.role is Role.DECODE]
        healthy = [each for each in decodes if each.healthy and each.instance.pool == pool]
        return sorted(healthy, key=lambda each: (not self._pool.pair(prefill, each).handed_over, each.draining))

    async def _refuses(self, decode: Member, kept: Kept, body: bytes) -> bool:
        """Whether it has refused the request, as it must."""
        headers = [(b"content-type", b"application/json"), (b"accept-encoding", b"identity")]
        key = value_of(kept.headers, b"authorization")
        if key is not None:
            headers.append((b"authorization", key.encode("latin-1")))
        try:
            answer = await self._client.open(decode.instance, "POST", _PATH, headers, body, _LIMITS)
            try:
                await answer.read()
            finally:
                await answer.aclose()
        except EngineFailure as failure:
            logger.info("KV of %s is not freed: %s", kept.prefill.instance.name, failure)
            return False
        return answer.status == 404
