"""A canary goes the way of its connector, and is judged by what that moves."""

import json

import pytest

from proxy.settings import Canary
from proxy.topology import ConnectorKind
from tests.fakes.engine import FakeEngine
from tests.fakes.transfer import Fabric

ON = Canary(interval=3600)
TOKENS = {ConnectorKind.LMCACHE: 2 * 256 + 48}
STORES = {ConnectorKind.SHARED_STORAGE, ConnectorKind.LMCACHE, ConnectorKind.MULTI}


def pair(kind: ConnectorKind) -> list[FakeEngine]:
    fabric = Fabric()
    return [FakeEngine(role, connector=kind, fabric=fabric) for role in ("prefill", "decode")]


@pytest.mark.parametrize("kind", ConnectorKind)
async def test_a_pair_that_works_is_proven(start, kind):
    duet = await start(engines=pair(kind), canary=ON)
    assert await duet.standing() == "proven"
    proof = (await duet.pairs())["prefill-0", "decode-0"]["proof"]
    assert proof["tokens"] == TOKENS.get(kind, 144)
    assert not duet.decode.fabric.waiting


@pytest.mark.parametrize("kind", ConnectorKind)
async def test_a_pair_that_moves_nothing_is_found_out(start, kind):
    prefill, decode = pair(kind)
    decode.recomputes = True
    duet = await start(engines=[prefill, decode], canary=ON)
    assert (await duet.pairs())["prefill-0", "decode-0"]["proof"]["verdict"] == "recomputed"


@pytest.mark.parametrize("kind", ConnectorKind)
async def test_what_decode_computes_alone_is_not_read_from_where_prefill_left_it(start, kind):
    duet = await start(engines=pair(kind), canary=ON)
    alone = json.loads(duet.decode.seen[-1].body)
    assert "kv_transfer_params" not in alone
    assert alone.get("prompt_logprobs") == (0 if kind in STORES else None)
    askings = 2 if kind is ConnectorKind.NIXL_PUSH else 1  # the first makes prefill known to decode
    assert duet.decode.by_source["local_compute"] == askings * TOKENS.get(kind, 144)
