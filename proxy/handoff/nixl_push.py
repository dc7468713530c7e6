"""vLLM's ``NixlPushConnector``: decode tells prefill where it wants the KV, prefill writes it there.

The engines find the two legs of a request by its id, so both must get the same, and no two tries may share one: KV of
the one would be written over what decode keeps for the other by now.
"""

from typing import Literal

from proxy import completion
from proxy.completion import Completion, JsonObject
from proxy.endpoint import Endpoint
from proxy.handoff.nixl_pull import ASK_PREFILL, NIXL, usable_params
from proxy.handoff.protocol import Legs, Order, Source


class NixlPush:
    """Decode is told all of prefill but its blocks: those prefill finds itself."""

    order: Literal[Order.CONCURRENT] = Order.CONCURRENT
    proof = NIXL

    def legs(self, request: Completion, source: Source, attempt: str) -> Legs:
        """Prefill is asked to keep its KV, decode to expect it. A response's id is no header, but in the body."""
        address = source.address
        params: JsonObject = {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_engine_id": source.engine_id,
            "remote_request_id": attempt,
            "remote_host": address.host,
            "remote_port": address.port,
            "tp_size": address.tensor_parallel,
            "pp_size": address.pipeline_parallel,
        }
        named: JsonObject = {"request_id": f"resp_{attempt}"} if request.endpoint is Endpoint.RESPONSES else {}
        return Legs(
            completion.prefill_body(request, ASK_PREFILL, more=named), completion.decode_body(request, params, named)
        )

    def handed_over(self, prefill_answer: bytes) -> bool:
        """Prefill answers parameters when it keeps its KV, as it would for decode to read."""
        return usable_params(prefill_answer) is not None
