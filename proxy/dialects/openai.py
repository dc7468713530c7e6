"""Decision: OpenAI's completions and chat completions.

An engine that gives up says so by the finish reason "abort"; before the first token the stream ends without a word. KV
that cannot be loaded is an error as the first event, in a chat after the one that only names the role.
"""

import json

from proxy.answer import ABORTED, GOOD, Judgement, Verdict, json_object
from proxy.errors import error_body
from proxy.events import Event

_DONE = b"[DONE]"


class Completions:
    """The dialect of ``/v1/completions`` and ``/v1/chat/completions``."""

    fails_by_breaking_off = False

    def judge(self, body: bytes) -> Judgement:
        """By the finish reasons, or as an error object."""
        if not self.suspects(body):
            return GOOD  # spares nearly all answers the parsing
        document = json_object(body)
        error = document.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            status = code if isinstance(code, int) and 400 <= code <= 599 else 502
            return Judgement(Verdict.ERROR, status, json.dumps({"error": error}).encode())
        if error is not None:
            return Judgement(Verdict.ERROR, 502, error_body(str(error), "BadGatewayError", 502))
        choices = document.get("choices")
        if isinstance(choices, list) and any(_aborted(choice) for choice in choices):
            return ABORTED
        return GOOD

    def opening(self, event: Event) -> Judgement | None:
        """The role of a chat and usage alone say nothing; the end before anything was said is an abort."""
        if event.data == _DONE:
            return ABORTED
        return None if _says_nothing(event.data) else self.judge(event.data)

    def suspects(self, chunk: bytes) -> bool:
        """Quotes inside a text are escaped, so that a text about abort is rarely suspected."""
        return b'"abort"' in chunk or b'"error"' in chunk

    def later(self, event: Event) -> Judgement:
        """As a whole answer."""
        return self.judge(event.data)

    def completes(self, event: Event) -> bool:
        """``[DONE]``."""
        return event.data == _DONE

    def error_body(self, message: str, kind: str, code: int) -> bytes:
        """OpenAI's error object."""
        return error_body(message, kind, code)

    def error_event(self, message: str, kind: str, code: int, last: bytes) -> bytes:
        """No ``[DONE]`` follows: the answer is not complete."""
        return b"data: " + error_body(message, kind, code) + b"\n\n"


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
