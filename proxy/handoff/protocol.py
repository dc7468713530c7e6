"""Shapes: what a KV connector wants of the proxy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol

from proxy.completion import Completion
from proxy.headers import RawHeaders
from proxy.topology import KVAddress


class Order(Enum):
    """How the two legs of a request run."""

    SEQUENTIAL = "sequential"
    """Decode is asked when prefill has answered."""
    CONCURRENT = "concurrent"
    """Both are asked at once, and decode waits for prefill's KV. Some engines wait for ever."""


@dataclass(frozen=True, slots=True)
class Proof:
    """By which counters of the engines one sees that a connector works, and how not to be deceived."""

    counter: str = "vllm:prompt_tokens_by_source_total"
    """Of decode: rises by the tokens of a prompt whose KV it received."""
    labels: Mapping[str, str] = field(default_factory=lambda: {"source": "external_kv_transfer"})
    """Of the sample that rises."""
    failures: tuple[str, ...] = ()
    """Counters of decode that rise when KV did not arrive."""
    expiries: tuple[str, ...] = ()
    """Counters of prefill that rise when it gave up KV that nobody had taken."""
    reference: Mapping[str, object] = field(default_factory=lambda: {"prompt_logprobs": 0})
    """Keys that make decode compute a prompt itself, whatever it has cached or could read. Without them it would answer
    by the KV that was handed over just before."""

    def moved(self, tokens: int, block: int) -> int:
        """The least by which the counter rises for a new prompt of so many tokens, with engine blocks of ``block``."""
        return tokens


@dataclass(frozen=True, slots=True)
class Source:
    """A prefill instance as decode has to be told of it."""

    address: KVAddress
    engine_id: str
    rank: int | None = None
    """Of the data-parallel engine behind its address; ``None``: there is one."""


@dataclass(frozen=True, slots=True)
class Legs:
    """What is asked of both at once."""

    prefill: bytes
    decode: bytes
    prefill_headers: RawHeaders = field(default_factory=list)
    """In place of the client's of the same names."""


class Sequential(Protocol):
    """A KV protocol whose legs run one after the other."""

    order: Literal[Order.SEQUENTIAL]
    proof: Proof

    def prefill_body(self, request: Completion) -> bytes:
        """What prefill is asked."""
        ...

    def decode_body(self, request: Completion, prefill_answer: bytes) -> bytes | None:
        """What decode is asked, from prefill's answer; ``None`` when that has no usable KV parameters."""
        ...


class Concurrent(Protocol):
    """A KV protocol whose legs run side by side."""

    order: Literal[Order.CONCURRENT]
    proof: Proof

    def legs(self, request: Completion, source: Source, attempt: str) -> Legs:
        """What both are asked; ``attempt`` names this try alone and is the request id of both legs."""
        ...

    def handed_over(self, prefill_answer: bytes) -> bool:
        """Whether prefill's answer means that decode gets KV. If not, decode would wait in vain."""
        ...


Handoff = Sequential | Concurrent
