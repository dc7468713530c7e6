"""vLLM's ``MooncakeConnector``: decode asks prefill for the KV of a transfer, prefill writes it when it is there."""

from typing import Literal

from proxy import completion
from proxy.answer import json_object
from proxy.completion import Completion, JsonObject
from proxy.handoff.protocol import Movement, Order, Source

# Prefill keeps KV only of what ends by its length: nothing else may end it.
_ENDS = frozenset({"stop", "stop_sequences", "stop_token_ids", "include_stop_str_in_output"})


class Mooncake:
    """The proxy names the transfer; who prefill is, its bootstrap server tells."""

    order: Literal[Order.CONCURRENT] = Order.CONCURRENT
    movement = Movement()
    has_bootstrap = True

    def prefill_body(self, request: Completion, attempt: str) -> bytes:
        """Ask for one token, whatever it is, and for keeping the KV."""
        ask: JsonObject = {"do_remote_decode": True, "do_remote_prefill": False, "transfer_id": attempt}
        return completion.prefill_body(request, ask, without=_ENDS, more={"ignore_eos": True})

    def decode_body(self, request: Completion, attempt: str, source: Source) -> bytes:
        """The client's request with the transfer and its source."""
        take: JsonObject = {"do_remote_prefill": True, "do_remote_decode": False, "transfer_id": attempt}
        return completion.decode_body(request, {**take, **source.params})

    def source(self, prefill_answer: bytes, known: Source | None) -> Source | None:
        """Prefill answers no parameters; it has let the KV go if something else than the length ended its answer."""
        answer = json_object(prefill_answer)
        choices = answer.get("choices")
        if isinstance(choices, list):
            kept = all(isinstance(each, dict) and each.get("finish_reason") == "length" for each in choices)
        else:
            kept = answer.get("status") == "incomplete" or answer.get("stop_reason") == "max_tokens"
        return known if kept else None
