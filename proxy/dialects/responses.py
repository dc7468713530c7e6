"""Decision: OpenAI's responses.

vLLM 0.32 has no word for an engine that gave up: the status is "completed" all the same, and only an answer without any
token betrays it. An abort after some tokens cannot be told from an end of the model's own choice. An engine that fails
before the first token breaks the stream off after its two opening events.
"""

import json
import re

from proxy.answer import ABORTED, GOOD, Judgement, Verdict, json_object
from proxy.completion import JsonObject
from proxy.errors import error_body
from proxy.events import Event

_OPENING = {b"response.created", b"response.queued", b"response.in_progress"}
_END = {b"response.completed", b"response.incomplete", b"response.failed"}
_GAVE_UP = {"cancelled", "failed"}
_SIGNS = (b'"status":"cancelled"', b'"status":"failed"', b"event: error")
_NUMBER = re.compile(rb'"sequence_number": ?(\d+)')


class Responses:
    """The dialect of ``/v1/responses``."""

    fails_by_breaking_off = True

    def judge(self, body: bytes) -> Judgement:
        """By the status and the count of tokens."""
        if b'"output_tokens":0,' not in body and not self.suspects(body):
            return GOOD
        return _judge(json_object(body))

    def opening(self, event: Event) -> Judgement | None:
        """The events that only name the response say nothing."""
        return None if event.name in _OPENING else self.later(event)

    def suspects(self, chunk: bytes) -> bool:
        """Quotes inside a text are escaped."""
        return _SIGNS[0] in chunk or _SIGNS[1] in chunk or _SIGNS[2] in chunk

    def later(self, event: Event) -> Judgement:
        """By the last event, which has the whole response, or as an error."""
        if event.name == b"error":
            return Judgement(Verdict.ERROR, 500, self.error_body("The engine failed.", "InternalServerError", 500))
        if event.name not in _END:
            return GOOD
        response = json_object(event.data).get("response")
        return _judge(response) if isinstance(response, dict) else GOOD

    def completes(self, event: Event) -> bool:
        """The event with the whole response; there is no ``[DONE]``."""
        return event.name in _END

    def error_body(self, message: str, kind: str, code: int) -> bytes:
        """OpenAI's error object."""
        return error_body(message, kind, code)

    def error_event(self, message: str, kind: str, code: int, last: bytes) -> bytes:
        """The API's own event; with the key ``error``, since the official client raises on nothing else."""
        numbers = _NUMBER.findall(last)
        document = {
            "type": "error",
            "sequence_number": int(numbers[-1]) + 1 if numbers else 0,
            "code": kind,
            "message": message,
            "param": None,
            "error": {"message": message, "type": kind, "param": None, "code": code},
        }
        return b"event: error\ndata: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"


def _judge(response: JsonObject) -> Judgement:
    usage = response.get("usage")
    without_tokens = isinstance(usage, dict) and usage.get("output_tokens") == 0
    return ABORTED if without_tokens or response.get("status") in _GAVE_UP else GOOD
