"""Shapes: what a KV connector wants of the proxy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol

from proxy.completion import Completion


class Order(Enum):
    """How the two legs of a request run."""

    SEQUENTIAL = "sequential"
    """Decode is asked when prefill has answered."""
    CONCURRENT = "concurrent"
    """Both are asked at once, and decode waits for prefill's KV. Some engines wait for ever."""


@dataclass(frozen=True, slots=True)
class Movement:
    """How the KV of a prompt moves, as far as one has to know it to see that it has moved."""

    reference: Mapping[str, object] = field(default_factory=dict)
    """Keys that make decode compute a prompt itself, though it could read it where prefill has left it."""

    whole_pieces: bool = False
    """Whether the KV of prompts that are shorter than a piece never moves."""

    def piece(self, block: int) -> int:
        """KV moves in pieces of so many tokens at most; the engine's blocks have ``block``."""
        return block

    def moved(self, tokens: int, block: int) -> int:
        """The least by which the counter rises for a new prompt of so many tokens.

        Some connectors leave out the last piece if it is not complete, and some models need the last token computed.
        """
        piece = self.piece(block)
        return (tokens - 1) // piece * piece


@dataclass(frozen=True, slots=True)
class Source:
    """A prefill instance as decode has to be told of it. Another process is another source."""

    engine_id: str
    """Its name in the connector."""
    params: Mapping[str, object]
    """KV parameters for decode that are the same for all requests."""
    rank: int | None = None
    """Of the data-parallel engine behind its address; ``None``: whichever it likes."""


class Sequential(Protocol):
    """A KV protocol whose legs run one after the other."""

    order: Literal[Order.SEQUENTIAL]
    movement: Movement

    def prefill_body(self, request: Completion) -> bytes:
        """What prefill is asked."""
        ...

    def decode_body(self, request: Completion, prefill_answer: bytes) -> bytes | None:
        """What decode is asked, from prefill's answer; ``None`` when that has no usable KV parameters."""
        ...

    def release_body(self, document: bytes) -> bytes | None:
        """What a decode instance must refuse with 404, so that prefill frees its KV; ``None`` when it keeps none.

        ``document`` is prefill's answer or decode's body: both have the KV parameters.
        """
        ...


class Concurrent(Protocol):
    """A KV protocol whose legs run side by side, as soon as it is known of prefill what decode has to be told.

    ``attempt`` names one try of one request: both legs have it as their request id.
    """

    order: Literal[Order.CONCURRENT]
    movement: Movement
    has_bootstrap: bool
    """Whether a server beside prefill tells who it is. If not, its answers do: the first one is waited for."""

    def prefill_body(self, request: Completion, attempt: str) -> bytes:
        """What prefill is asked."""
        ...

    def decode_body(self, request: Completion, attempt: str, source: Source) -> bytes:
        """What decode is asked."""
        ...

    def source(self, prefill_answer: bytes, known: Source | None) -> Source | None:
        """Who has KV for decode, by prefill's answer; ``None`` when nobody has, and decode would wait in vain."""
        ...


Handoff = Sequential | Concurrent
