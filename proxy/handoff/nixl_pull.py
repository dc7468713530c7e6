"""vLLM's ``NixlConnector``: prefill answers where its KV lies, decode reads it from there."""

import json
from typing import Literal

from proxy import completion
from proxy.answer import json_object
from proxy.completion import Completion, JsonObject
from proxy.handoff.protocol import Movement, Order

NIXL = Movement()

# Decode's engine dies or hangs for ever on parameters that lack one of these.
_NEEDED = ("remote_block_ids", "remote_engine_id", "remote_request_id", "remote_host", "remote_port")

NO_MODEL = "duet-release-kv"

ASK_PREFILL: JsonObject = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


class NixlPull:
    """The parameters in prefill's answer go to decode verbatim; what they mean is the engines' business."""

    order: Literal[Order.SEQUENTIAL] = Order.SEQUENTIAL

    def __init__(self, movement: Movement = NIXL) -> None:
        self.movement = movement

    def prefill_body(self, request: Completion) -> bytes:
        """Ask for one token and for keeping the KV."""
        return completion.prefill_body(request, ASK_PREFILL)

    def decode_body(self, request: Completion, prefill_answer: bytes) -> bytes | None:
        """The client's request with prefill's parameters; ``None`` when they are missing or partial."""
        params = usable_params(prefill_answer)
        return None if params is None else completion.decode_body(request, params)

    def release_body(self, document: bytes) -> bytes | None:
        """A request for a model that no engine has: vLLM tells prefill to free what a refused request was to take."""
        params = usable_params(document)
        if params is None:
            return None
        body = {"model": NO_MODEL, "prompt": "x", "max_tokens": 1, completion.KV_KEY: params}
        return json.dumps(body).encode()


def usable_params(document: bytes) -> JsonObject | None:
    """The KV parameters in prefill's answer, or in decode's body; ``None`` when they are missing or partial."""
    params = json_object(document).get(completion.KV_KEY)
    if not isinstance(params, dict) or any(params.get(key) in (None, "", []) for key in _NEEDED):
        return None
    return params if params.get("do_remote_prefill") is True else None
