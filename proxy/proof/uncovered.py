"""Decision: what decode is told of prefill, and what it must not be told so that its answer is evidence.

Prefill's KV parameters say how much of the prompt it had cached, and decode answers that as its own ``cached_tokens``.
Without it, decode answers how many tokens of this one prompt it has not computed itself: with a prompt that nobody has
cached, those whose KV it has received, whatever else it does at the time.
"""

import json
from typing import Literal

from proxy.answer import json_object
from proxy.completion import KV_KEY, Completion
from proxy.handoff.protocol import Order, Sequential

_COVER = "remote_prefill_cached_tokens"


class Uncovered:
    """A hand-off that leaves that out."""

    order: Literal[Order.SEQUENTIAL] = Order.SEQUENTIAL

    def __init__(self, handoff: Sequential) -> None:
        self._handoff = handoff
        self.movement = handoff.movement

    def prefill_body(self, request: Completion) -> bytes:
        """As the hand-off has it."""
        return self._handoff.prefill_body(request)

    def decode_body(self, request: Completion, prefill_answer: bytes) -> bytes | None:
        """As the hand-off has it, but for the one number."""
        body = self._handoff.decode_body(request, prefill_answer)
        document = json_object(body or b"")
        params = document.get(KV_KEY)
        if not isinstance(params, dict) or _COVER not in params:
            return body
        return json.dumps({**document, KV_KEY: {key: params[key] for key in params if key != _COVER}}).encode()

    def release_body(self, document: bytes) -> bytes | None:
        """As the hand-off has it."""
        return self._handoff.release_body(document)


def received_by(answer: bytes) -> int | None:
    """Tokens of its prompt that decode has not computed itself, by its answer; ``None`` when that does not say."""
    usage = json_object(answer).get("usage")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return cached if isinstance(cached, int) else None
