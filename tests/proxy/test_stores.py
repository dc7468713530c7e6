"""Connectors without KV parameters: prefill leaves the KV where decode finds it."""

import json

import pytest

from tests.fakes.engine import FakeEngine, Fault
from tests.fakes.transfer import Fabric

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5, "stop": ["x"], "seed": 12345678901234567890}

pytestmark = pytest.mark.parametrize("connector", ["shared-storage", "lmcache"])


async def stored(start, connector: str):
    fabric = Fabric()
    return await start(engines=[FakeEngine(role, connector=connector, fabric=fabric) for role in ("prefill", "decode")])


@pytest.mark.parametrize("stream", [False, True])
async def test_nobody_is_told_of_any_kv_and_decode_gets_the_client_s_bytes(start, connector, stream):
    duet = await stored(start, connector)
    body = json.dumps(TEXT | {"stream": stream}, indent=1).encode()
    headers = {"content-type": "application/json"}
    answer = await duet.client.post("/v1/completions", content=body, headers=headers)
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")
    asked = json.loads(duet.prefill.seen[0].body)
    assert asked == TEXT | {"stream": False, "max_tokens": 1}
    assert duet.decode.seen[0].body == body
    assert duet.decode.by_source == {"local_compute": 0, "local_cache_hit": 0, "external_kv_transfer": 3}


async def test_decode_is_asked_only_after_prefill_has_answered(start, connector):
    duet = await stored(start, connector)
    duet.prefill.faults.append(Fault(status=400))
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 400
    assert duet.decode.seen == []


async def test_a_failed_prefill_is_served_without(start, connector):
    duet = await stored(start, connector)
    duet.prefill.faults.append(Fault(status=500))
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "prefill_failed")
    assert await duet.metric("duet_prefill_without_kv_total") == 0


async def test_decode_that_fails_is_the_pair_s(start, connector):
    duet = await stored(start, connector)
    duet.decode.faults.append(Fault(status=500))
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "decode_failed")
    assert await duet.metric("duet_handovers_total", outcome="failed") == 1
