"""Shape: what is known of one request while it runs; the source of its metrics, headers and line in the log."""

import time
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote

from proxy.completion import Bypass
from proxy.endpoint import Endpoint
from proxy.headers import RawHeaders, RequestId
from proxy.usage import Drafted, Usage

_METHOD, _ROUTE = 16, 256
"""The most letters of what a client has made up that are in the log."""


class Fields(dict[str, object]):
    """What one line of the log tells, by name."""

    def __str__(self) -> str:
        """For people."""
        return " ".join(f"{name}={'-' if value is None else value}" for name, value in self.items())


class ServedBy(StrEnum):
    """The way a request went."""

    PD = "pd"
    AGGREGATED = "aggregated"


class Outcome(StrEnum):
    """How a request ended."""

    OK = "ok"
    """With its answer."""
    REJECTED = "rejected"
    """It was wrong."""
    REFUSED = "refused"
    """There was no room, or the proxy ends."""
    LEFT = "left"
    """The client did not wait."""
    FAILED = "failed"
    """Nobody answered it."""
    BROKEN_OFF = "broken_off"
    """Its answer has no end."""


WENT_WRONG = frozenset({Outcome.REFUSED, Outcome.FAILED, Outcome.BROKEN_OFF})
"""Ends that are not the client's doing."""


class Phase(StrEnum):
    """How far a request is."""

    UPLOAD = "upload"
    """Its body comes."""
    QUEUE = "queue"
    """It waits for a place."""
    PREFILL = "prefill"
    """An instance is chosen, and prefill computes."""
    FIRST_EVENT = "first_event"
    """An instance was asked for its answer."""
    ANSWER = "answer"
    """The answer is on its way to the client."""


class Retry(StrEnum):
    """Who is tried after a failure."""

    PAIR = "pair"
    """Another pair."""
    DECODE = "decode"
    """Another decode instance, with the same KV."""
    ALONE = "alone"
    """Another instance, without a hand-over."""


@dataclass(slots=True)
class Record:
    """One request. Times are seconds of ``time.monotonic``."""

    id: RequestId
    endpoint: Endpoint
    method: str = "POST"
    route: str = ""
    """The path of the URL, without its query."""
    client: str | None = None
    """The name of its key; who takes turns with others when there is a queue."""
    started: float = field(default_factory=time.monotonic)
    model: str = "none"
    """The label of what it asks for: never what a client has made up."""
    has_one_choice: bool = True
    """Whether all tokens of the answer follow each other."""
    phase: Phase = Phase.UPLOAD
    path: ServedBy | None = None
    """Known once it is served."""
    prefill: str | None = None
    """The instance whose KV was handed over."""
    decode: str | None = None
    """The instance that generates the answer."""
    pool: str | None = None
    """The pool whose instances these are, by its name; ``None`` where there is one pool only."""
    fell_back_from: str | None = None
    """The pool that should have served it and could not."""
    split: str | None = None
    """The id of the split that has decided about it."""
    arm: str | None = None
    """The pool to which the split has sent it."""
    bucket: int | None = None
    """Of the split: who asks."""
    copied: bool = False
    """Whether the split's shadow gets a copy."""
    bypass: Bypass | None = None
    attempts: int = 0
    """Pairs that were asked so far."""
    first_byte: float | None = None
    """When the first event of a streamed answer came."""
    events: int = 0
    """That came after it, but for the one that only says that the answer is complete."""
    longest_pause: float | None = None
    """Seconds between two arrivals within a streamed answer."""
    usage: Usage | None = None
    """Tokens, where the answer tells them."""
    drafted: Drafted | None = None
    """Tokens that speculation drafted for it, where the answer tells them."""
    temperature: float = 1.0
    """Of its sampling."""
    task: str | None = None
    """Requests of one task are expected to have the same acceptance; ``None`` where nobody asks for that."""
    failure: str | None = None
    """What ended the request early, in a word."""
    reason: str | None = None
    """The same in a sentence."""

    @property
    def ttft(self) -> float | None:
        """Seconds to the first event; ``None`` where the answer is not streamed or has not begun."""
        return None if self.first_byte is None else self.first_byte - self.started

    def tpot(self, end: float) -> float | None:
        """Seconds for each token after the first, of an answer that was complete at ``end`` and tells its tokens."""
        if self.first_byte is None or self.usage is None or not self.has_one_choice or self.usage.completion < 2:
            return None
        return (end - self.first_byte) / (self.usage.completion - 1)

    def headers(self) -> RawHeaders:
        """What the client is told of the way its request went."""
        told = {
            "x-request-id": self.id.public,
            "x-duet-path": self.path,
            "x-duet-prefill": self.prefill,
            "x-duet-decode": self.decode,
            "x-duet-bypass": self.bypass,
            "x-duet-pool": self.pool,
            "x-duet-pool-fallback": self.fell_back_from,
            "x-duet-arm": self.arm,
        }
        return [(name.encode(), value.encode()) for name, value in told.items() if value is not None]

    def line(self, status: int, outcome: Outcome) -> Fields:
        """For the access log. Neither prompts nor headers of the client are in it."""
        now = time.monotonic()
        ttft = None if self.first_byte is None else round((self.first_byte - self.started) * 1000)
        prompt, completion = (None, None) if self.usage is None else self.usage
        return Fields(
            request_id=self.id.internal,
            endpoint=self.endpoint,
            client=self.client,
            status=status,
            path=self.path,
            prefill=self.prefill,
            decode=self.decode,
            bypass=self.bypass,
            failure=self.failure,
            ttft_ms=ttft,
            total_ms=round((now - self.started) * 1000),
            method=self.method[:_METHOD],
            route=quote(self.route, errors="replace")[:_ROUTE],
            model=self.model,
            outcome=outcome,
            prompt_tokens=prompt,
            completion_tokens=completion,
            **({} if self.pool is None else {"pool": self.pool, "fell_back_from": self.fell_back_from}),
            **({} if self.arm is None else {"arm": self.arm}),
        )
