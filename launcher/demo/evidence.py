"""How many prompt tokens came to decode as KV cache from prefill: the engines' own counters."""

from collections.abc import Sequence

import httpx
import tenacity
from prometheus_client.parser import text_string_to_metric_families

COUNTER = "vllm:prompt_tokens_by_source"
SOURCE = "external_kv_transfer"
_PATIENCE = 5.0
"""Seconds; an engine counts a request's tokens a moment after it has answered."""


async def tokens_received(client: httpx.AsyncClient, decode_urls: Sequence[str]) -> int:
    """The counter's value now, summed over the decode instances."""
    total = 0.0
    for url in decode_urls:
        text = (await client.get(f"{url}/metrics")).raise_for_status().text
        total += sum(
            sample.value
            for family in text_string_to_metric_families(text)
            if family.name == COUNTER
            for sample in family.samples
            if sample.name == f"{COUNTER}_total" and sample.labels.get("source") == SOURCE
        )
    return int(total)


async def tokens_received_since(client: httpx.AsyncClient, decode_urls: Sequence[str], before: int, wanted: int) -> int:
    """How far the counter rose above ``before``; waits a little for it to reach ``wanted``."""

    async def rise() -> int:
        return await tokens_received(client, decode_urls) - before

    def last(state: tenacity.RetryCallState) -> int:
        assert state.outcome is not None
        return int(state.outcome.result())

    patiently = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_result(lambda received: received < wanted),
        wait=tenacity.wait_fixed(0.1),
        stop=tenacity.stop_after_delay(_PATIENCE),
        retry_error_callback=last,
    )
    return await patiently(rise)
