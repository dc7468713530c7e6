"""vLLM's ``MooncakeConnector``: decode asks prefill for the KV of a transfer, prefill writes it when it is there."""

from typing import Literal

from proxy import completion
from proxy.answer import json_object
from proxy.completion import Completion
from proxy.handoff.protocol import Legs, Order, Proof, Source

# Prefill keeps KV only of what ends by its length: nothing else may end it.
_ENDS = frozenset({"stop", "stop_sequences", "stop_token_ids", "include_stop_str_in_output"})


class Mooncake:
    """The proxy names the transfer; both engines learn the rest from prefill's bootstrap server."""

    order: Literal[Order.CONCURRENT] = Order.CONCURRENT
    proof = Proof()

    def legs(self, request: Completion, source: Source, attempt: str) -> Legs:
        """Both are told of the transfer. Only the engine that was named to decode may compute it."""
        ask: dict[str, object] = {"do_remote_decode": True, "do_remote_prefill": False, "transfer_id": attempt}
        params: dict[str, object] = {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "transfer_id": attempt,
            "remote_engine_id": source.engine_id,
            "remote_bootstrap_addr": source.address.url,
        }
        rank = [] if source.rank is None else [(b"x-data-parallel-rank", b"%d" % source.rank)]
        return Legs(
            completion.prefill_body(request, ask, without=_ENDS, more={"ignore_eos": True}),
            completion.decode_body(request, params),
            rank,
        )

    def handed_over(self, prefill_answer: bytes) -> bool:
        """Prefill answers no parameters; it has let the KV go if something else than the length ended its answer."""
        answer = json_object(prefill_answer)
        choices = answer.get("choices")
        if isinstance(choices, list):
            return all(isinstance(each, dict) and each.get("finish_reason") == "length" for each in choices)
        return answer.get("status") == "incomplete" or answer.get("stop_reason") == "max_tokens"
