"""vLLM's ``NixlPushConnector``: decode tells prefill where it wants the KV, prefill writes it there.

The engines find the two legs of a request by its id, so both must get the same, and no two tries may share one: KV of
the one would be written over what decode keeps for the other by now.

Decode has to name prefill's engine. A fixed name would be known beforehand, but decode holds on to the connection of
the process that had it first: once that has ended, every request would wait for ever. So each process has a new name,
and prefill's answers tell it.
"""

from typing import Literal

from proxy import completion
from proxy.completion import Completion, JsonObject
from proxy.endpoint import Endpoint
from proxy.handoff.nixl_pull import ASK_PREFILL, NIXL, usable_params
from proxy.handoff.protocol import Order, Source

_LASTING = ("remote_engine_id", "remote_host", "remote_port", "tp_size", "dcp_size", "pp_size", "transfer_mode")
_TAKE: JsonObject = {"do_remote_prefill": True, "do_remote_decode": False}


class NixlPush:
    """Decode is told all of prefill but its blocks: those prefill finds itself."""

    order: Literal[Order.CONCURRENT] = Order.CONCURRENT
    movement = NIXL
    has_bootstrap = False

    def prefill_body(self, request: Completion, attempt: str) -> bytes:
        """Ask for one token and for keeping the KV."""
        return completion.prefill_body(request, ASK_PREFILL, more=_named(request, attempt))

    def decode_body(self, request: Completion, attempt: str, source: Source) -> bytes:
        """The client's request with what prefill said of itself."""
        params = {**_TAKE, **source.params, "remote_request_id": attempt}
        return completion.decode_body(request, params, _named(request, attempt))

    def source(self, prefill_answer: bytes, known: Source | None) -> Source | None:
        """Prefill answers parameters when it keeps its KV, as it would for decode to read."""
        params = usable_params(prefill_answer)
        if params is None:
            return None
        return Source(str(params["remote_engine_id"]), {key: params[key] for key in _LASTING if key in params})


def _named(request: Completion, attempt: str) -> JsonObject:
    """A response's id is in no header, but in the body."""
    return {"request_id": f"resp_{attempt}"} if request.endpoint is Endpoint.RESPONSES else {}
