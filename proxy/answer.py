"""Decision: what an engine's answer of status 200 really says.

An engine that shuts down answers 200 with the finish reason "abort", or with a stream that ends before it has said
anything. An engine that cannot load the handed-over KV answers 200 and then an error as the first event of the stream;
in a chat, after the event that only names the role.
"""

import json
from enum import StrEnum
from typing import NamedTuple

from proxy.completion import JsonObject

DONE = b"[DONE]"
"""The data of the last event of every complete stream."""
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


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


_GOOD = Judgement(Verdict.GOOD)


def json_object(body: bytes) -> JsonObject:
    """A body's JSON object; empty when it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def judge(body: bytes) -> Judgement:
    """Judge one JSON answer: a whole body, or the data of one event."""
    if body == DONE:
        return Judgement(Verdict.ABORTED)
    if b'"abort"' not in body and b'"error"' not in body:
        return _GOOD  # spares nearly all answers the parsing
    document = json_object(body)
    error = document.get("error")
    if isinstance(error, dict):
        code = error.get("code")
        status = code if isinstance(code, int) and 400 <= code <= 599 else 502
        return Judgement(Verdict.ERROR, status, json.dumps({"error": error}).encode())
    choices = document.get("choices")
    if isinstance(choices, list) and any(_aborted(choice) for choice in choices):
        return Judgement(Verdict.ABORTED)
    return _GOOD


def first_statement(head: bytes) -> bytes | None:
    """The data of the first complete event that says something; ``None`` when more of the stream is needed."""
    text = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    *events, _ = text.split(b"\n\n")
    for event in events:
        lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
        data = b"\n".join(lines)
        if data and not _says_nothing(data):
            return data
    return None


def at_event_end(tail: bytes) -> bool:
    """Whether another event may be written after these last bytes of a stream."""
    return not tail or tail.endswith(_EVENT_ENDS)


def _says_nothing(data: bytes) -> bool:
    """Whether an event has neither text nor an end: the role of a chat, or usage alone."""
    choices = json_object(data).get("choices")
    return isinstance(choices, list) and all(_only_role(choice) for choice in choices)


def _only_role(choice: object) -> bool:
    if not isinstance(choice, dict) or choice.get("finish_reason") is not None:
        return False
    delta = choice.get("delta")
    return isinstance(delta, dict) and "role" in delta and not any(v for k, v in delta.items() if k != "role")


def _aborted(choice: object) -> bool:
    return isinstance(choice, dict) and choice.get("finish_reason") == "abort"
