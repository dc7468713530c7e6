"""Decision: Anthropic's messages.

vLLM 0.32 answers without a stop reason when the engine gave up, or in a stream, before the first token, with one and no
tokens. Errors in a stream are events of their own, without a status.
"""

import json

from proxy.answer import ABORTED, GOOD, Judgement, Verdict, json_object
from proxy.completion import JsonObject
from proxy.events import Event

_OPENING = {b"message_start", b"ping"}


class Messages:
    """The dialect of ``/v1/messages``."""

    fails_by_breaking_off = False

    def judge(self, body: bytes) -> Judgement:
        """By the stop reason, which every complete answer has."""
        if b'"stop_reason":"' in body:
            return GOOD
        return ABORTED if json_object(body).get("type") == "message" else GOOD

    def opening(self, event: Event) -> Judgement | None:
        """The event that only names the message says nothing."""
        return None if event.name in _OPENING else self.later(event)

    def suspects(self, chunk: bytes) -> bool:
        """Quotes inside a text are escaped."""
        return b'"stop_reason":null' in chunk or b"event: error" in chunk

    def later(self, event: Event) -> Judgement:
        """By the event with the stop reason, or as an error."""
        if event.name == b"error":
            return Judgement(Verdict.ERROR, 500, event.data)
        if event.name == b"message_delta" and _gave_up(json_object(event.data)):
            return ABORTED
        return GOOD

    def completes(self, event: Event) -> bool:
        """``message_stop``; there is no ``[DONE]``."""
        return event.name == b"message_stop"

    def error_body(self, message: str, kind: str, code: int) -> bytes:
        """Anthropic's error object."""
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()

    def error_event(self, message: str, kind: str, code: int, last: bytes) -> bytes:
        """Clients raise on the event's name."""
        return b"event: error\ndata: " + self.error_body(message, kind, code) + b"\n\n"


def _gave_up(event: JsonObject) -> bool:
    delta, usage = event.get("delta"), event.get("usage")
    without_reason = isinstance(delta, dict) and delta.get("stop_reason") is None
    return without_reason or (isinstance(usage, dict) and usage.get("output_tokens") == 0)
