"""Connectors over a store that both engines know: whoever has computed a prompt leaves its KV there for the others."""

from typing import Literal

from proxy import completion
from proxy.completion import Completion
from proxy.handoff.protocol import Movement, Order

CHUNK = 256
"""Tokens in a piece of an LMCache store."""


# Engines read neither their prefix cache nor a store for a request that asks for these.
ALONE = {"prompt_logprobs": 0}


class Files(Movement):
    """Of vLLM's ``ExampleConnector``."""

    def moved(self, tokens: int, block: int) -> int:
        """It writes the whole blocks before the last token, but looks for those before the last two."""
        return 0 if (tokens - 1) % block == 0 else super().moved(tokens, block)


class Chunks(Movement):
    """Of LMCache."""

    def piece(self, block: int) -> int:
        """Its own."""
        return CHUNK


class Stored:
    """Nobody is told anything: decode finds the KV by the prompt's tokens."""

    order: Literal[Order.SEQUENTIAL] = Order.SEQUENTIAL

    def __init__(self, movement: Movement) -> None:
        self.movement = movement

    def prefill_body(self, request: Completion) -> bytes:
        """Ask for one token."""
        return completion.prefill_body(request, None)

    def decode_body(self, request: Completion, prefill_answer: bytes) -> bytes | None:
        """The client's bytes."""
        return request.body

    def release_body(self, document: bytes) -> bytes | None:
        """Prefill keeps nothing for decode: it lies in the store."""
        return None


SHARED_STORAGE = Stored(Files(reference=ALONE, whole_pieces=True))
"""vLLM's ``ExampleConnector``: a folder of files."""

LMCACHE = Stored(Chunks(reference=ALONE, whole_pieces=True))
"""vLLM's ``LMCacheConnectorV1``."""
