"""vLLM's ``NixlConnector``: prefill answers where its KV lies, decode reads it from there."""

from typing import Literal

from proxy import completion
from proxy.answer import json_object
from proxy.completion import Completion, JsonObject
from proxy.handoff.protocol import Order, Proof

NIXL = Proof(
    failures=("vllm:nixl_num_failed_transfers_total",),
    expiries=("vllm:nixl_num_kv_expired_reqs_total", "vllm:nixl_num_notifications_after_expiry_total"),
)

# Decode's engine dies or hangs for ever on parameters that lack one of these.
_NEEDED = ("remote_block_ids", "remote_engine_id", "remote_request_id", "remote_host", "remote_port")

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

    def __init__(self, proof: Proof = NIXL) -> None:
        self.proof = proof

    def prefill_body(self, request: Completion) -> bytes:
        """Ask for one token and for keeping the KV."""
        return completion.prefill_body(request, ASK_PREFILL)

    def decode_body(self, request: Completion, prefill_answer: bytes) -> bytes | None:
        """The client's request with prefill's parameters; ``None`` when they are missing or partial."""
        params = usable_params(prefill_answer)
        return None if params is None else completion.decode_body(request, params)


def usable_params(prefill_answer: bytes) -> JsonObject | None:
    """The KV parameters in prefill's answer; ``None`` when they are missing or partial."""
    params = json_object(prefill_answer).get(completion.KV_KEY)
    if not isinstance(params, dict) or any(params.get(key) in (None, "", []) for key in _NEEDED):
        return None
    return params if params.get("do_remote_prefill") is True else None
