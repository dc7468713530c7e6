"""Decision: what an engine's answer of status 200 really says, whatever the API.

An engine that shuts down answers 200 and gives the request up; one that cannot load the handed-over KV answers 200 and
fails in the stream. Each API says so in its own words: its :class:`Dialect` knows them (see ``proxy/dialects``).
"""

import json
from enum import StrEnum
from typing import NamedTuple, Protocol

from proxy.completion import JsonObject
from proxy.events import Event, events


class Verdict(StrEnum):
    """What became of a request."""

    GOOD = "good"
    ABORTED = "aborted"
    ERROR = "error"


class Judgement(NamedTuple):
    """A verdict and, for an error, its status and the body for a client."""

    verdict: Verdict
    status: int = 200
    body: bytes = b""


GOOD = Judgement(Verdict.GOOD)
ABORTED = Judgement(Verdict.ABORTED)


class Dialect(Protocol):
    """How one API says what became of a request."""

    fails_by_breaking_off: bool
    """Whether an engine that fails before the first token just breaks the stream off, after events that say nothing."""

    def judge(self, body: bytes) -> Judgement:
        """Judge an answer that is not streamed."""
        ...

    def opening(self, event: Event) -> Judgement | None:
        """Judge the first event of a stream that says something; ``None`` for one that says nothing."""
        ...

    def suspects(self, chunk: bytes) -> bool:
        """Whether an event in these bytes may be other than good. Asked for every chunk: it has to be cheap."""
        ...

    def later(self, event: Event) -> Judgement:
        """Judge an event after the first that said something."""
        ...

    def completes(self, event: Event) -> bool:
        """Whether a stream that ends with this event is complete."""
        ...

    def error_body(self, message: str, kind: str, code: int) -> bytes:
        """An error as the API's clients read it."""
        ...

    def error_event(self, message: str, kind: str, code: int, last: bytes) -> bytes:
        """An event on which the API's clients raise, after these last events."""
        ...


def json_object(body: bytes) -> JsonObject:
    """A body's JSON object; empty when it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def first_statement(head: bytes, dialect: Dialect) -> Judgement | None:
    """What the first complete event says that says something; ``None`` when more of the stream is needed."""
    return next((found for event in events(head) if event.data and (found := dialect.opening(event))), None)


def good_part(chunk: bytes, dialect: Dialect) -> tuple[bytes, Judgement]:
    """The events before the one in which the engine gave up, or up to the one that tells the client of an error."""
    for event in events(chunk):
        judgement = dialect.later(event)
        if judgement.verdict is Verdict.ABORTED:
            return chunk[: event.start], judgement
        if judgement.verdict is Verdict.ERROR:
            return chunk[: event.end], judgement
    return chunk, GOOD
