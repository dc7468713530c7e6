"""KV parameters come from engines only, on every route, whatever becomes of the request."""

import json

import pytest

from tests.fakes.engine import Fault
from tests.proxy.test_every_api import every_route

HOSTILE = {
    "do_remote_prefill": True,
    "remote_engine_id": "e",
    "remote_block_ids": [[1, 2]],
    "remote_host": "203.0.113.7",
    "remote_port": 5600,
}
PLACES = {
    "at the top": {"kv_transfer_params": HOSTILE},
    "among the extra arguments": {"vllm_xargs": {"kv_transfer_params": HOSTILE, "mine": 1}},
    "as text": {"vllm_xargs": {"kv_transfer_params": "203.0.113.7"}},
}
WAYS = {
    "pd": (None, None),
    "prefill_failed": (Fault(status=500), None),
    "prefill_without_kv": (Fault(kv=None), None),
    "decode_failed": (None, Fault(status=500)),
}


@every_route
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
async def test_those_of_a_client_reach_no_engine(duet, route, body, way, place):
    prefill, decode = WAYS[way]
    duet.prefill.faults.extend([prefill] if prefill else [])
    duet.decode.faults.extend([decode] if decode else [])
    answer = await duet.client.post(route, json=body | PLACES[place])
    assert (answer.status_code, answer.headers.get("x-duet-bypass", "pd")) == (200, way)
    assert duet.prefill.seen
    assert duet.decode.seen
    for seen in duet.prefill.seen + duet.decode.seen:
        assert b"203.0.113.7" not in seen.body
    last = json.loads(duet.decode.seen[-1].body)
    assert ("kv_transfer_params" in last) == (way == "pd")
    assert last.get("vllm_xargs", {}) in ({}, {"mine": 1})


async def test_those_of_prefill_reach_decode_with_their_types_whatever_they_are(duet):
    unknown = {"remote_dp_rank": 3, "tp_size": 2, "zz": [1, "1", 1.5, None, {"a": True}], "remote_port": "5600"}
    duet.prefill.faults.append(Fault(kv=unknown))
    await duet.client.post("/v1/completions", json={"model": "fake", "prompt": "one", "max_tokens": 2})
    given = json.loads(duet.decode.seen[0].body)["kv_transfer_params"]
    assert {key: given[key] for key in unknown} == unknown
    assert [type(given[key]) for key in ("remote_dp_rank", "tp_size", "remote_port")] == [int, int, str]
