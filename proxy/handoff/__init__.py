"""The KV protocols: what prefill and decode are told, so that a KV cache moves from one to the other.

A hand-off turns bodies into bodies and does no I/O.
"""

from typing import Protocol

from proxy.completion import Completion
from proxy.handoff.nixl_pull import NixlPull
from proxy.topology import ConnectorKind


class Handoff(Protocol):
    """One KV protocol whose legs run one after the other."""

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


HANDOFFS: dict[ConnectorKind, Handoff] = {
    ConnectorKind.NIXL_PULL: NixlPull(),
}
