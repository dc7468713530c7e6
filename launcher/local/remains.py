"""What an instance that gets no new requests still has: requests, by the proxy's count, and KV, by the engine's own."""

import time

import httpx
from prometheus_client.parser import text_string_to_metric_families

from proxy.topology import Instance, Role

_USAGE = "vllm:kv_cache_usage_perc"
"""Blocks of finished requests that decode has not read yet count as used, those that are only cached do not."""


class Remains:
    """One instance on its way to having nothing left."""

    def __init__(self, instance: Instance, lease: float) -> None:
        """``lease``: seconds that KV is kept for decode; only for an engine that does not say what it keeps."""
        self.name = instance.name
        self._keeps_kv = instance.role is Role.PREFILL
        self._url = f"{instance.url}/metrics"
        self._lease = lease
        self._began = time.monotonic()
        self._finished: float | None = None
        """When its last request had ended."""

    def look(self, requests: int, client: httpx.Client) -> str | None:
        """What it has, with so many requests; ``None`` for nothing."""
        if requests:
            return f"{requests} request{'s'[: requests != 1]} running"
        if self._finished is None:
            self._finished = time.monotonic()
        return self._kv(client) if self._keeps_kv else None

    def story(self) -> str:
        """What was waited for."""
        now = time.monotonic()
        finished = self._finished or now
        requests = f"{finished - self._began:.1f} s for its requests"
        return f"{requests}, {now - finished:.1f} s for its KV to be taken" if self._keeps_kv else requests

    def _kv(self, client: httpx.Client) -> str | None:
        try:
            answer = client.get(self._url)
        except httpx.HTTPError:
            return None  # it is gone, and its KV with it
        families = text_string_to_metric_families(answer.text) if answer.is_success else []
        found = [sample.value for family in families for sample in family.samples if sample.name == _USAGE]
        if found:
            return f"{max(found):.1%} of its KV cache waits for decode" if max(found) else None
        assert self._finished is not None
        left = self._finished + self._lease - time.monotonic()
        return f"it does not say what its KV cache holds: {left:.0f} s of the lease are left" if left > 0 else None
