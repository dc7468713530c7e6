"""KV protocols."""

import json

import pytest

from proxy.completion import parse
from proxy.endpoint import Endpoint
from proxy.handoff import HANDOFFS
from proxy.handoff.protocol import Order
from proxy.topology import ConnectorKind
from tests.fakes.answers import kv_params

NIXL = HANDOFFS[ConnectorKind.NIXL_PULL]
REQUEST = parse(b'{"prompt":"x","max_tokens":5}', Endpoint.COMPLETIONS)
PARAMS = kv_params("engine", "cmpl-1", 5701, 39) | {"remote_dp_rank": 3, "zz": [1, "2", 2.50]}


def answer(params: object) -> bytes:
    return json.dumps({"choices": [], "kv_transfer_params": params}).encode()


def test_every_connector_has_a_hand_off():
    assert set(HANDOFFS) == set(ConnectorKind)


def test_nixl_prefill_is_asked_to_keep_its_kv():
    assert json.loads(NIXL.prefill_body(REQUEST))["kv_transfer_params"] == {
        "do_remote_decode": True,
        "do_remote_prefill": False,
        "remote_engine_id": None,
        "remote_block_ids": None,
        "remote_host": None,
        "remote_port": None,
    }


def test_nixl_parameters_go_to_decode_verbatim():
    body = NIXL.decode_body(REQUEST, answer(PARAMS))
    assert json.loads(body) == {"prompt": "x", "max_tokens": 5, "kv_transfer_params": PARAMS}


@pytest.mark.parametrize(
    "key",
    ["remote_block_ids", "remote_engine_id", "remote_request_id", "remote_host", "remote_port", "do_remote_prefill"],
)
def test_nixl_parameters_that_lack_one_are_never_forwarded(key):
    partial = {name: value for name, value in PARAMS.items() if name != key}
    assert NIXL.decode_body(REQUEST, answer(partial)) is None
    assert NIXL.decode_body(REQUEST, answer(PARAMS | {key: None})) is None


@pytest.mark.parametrize("body", [answer(None), answer({}), answer([1]), b"{}", b"[]", b"not json", b""])
def test_nixl_answers_without_parameters_hand_nothing_over(body):
    assert NIXL.decode_body(REQUEST, body) is None


@pytest.mark.parametrize("document", [answer(PARAMS), NIXL.decode_body(REQUEST, answer(PARAMS))])
def test_nixl_kv_is_given_back_by_a_request_that_every_engine_refuses(document):
    body = NIXL.release_body(document)
    assert body is not None
    assert json.loads(body) == {
        "model": "duet-release-kv",
        "prompt": "x",
        "max_tokens": 1,
        "kv_transfer_params": PARAMS,
    }


@pytest.mark.parametrize("body", [answer(None), answer(PARAMS | {"remote_host": None}), b"[]", b"not json", b""])
def test_where_nixl_keeps_nothing_there_is_nothing_to_give_back(body):
    assert NIXL.release_body(body) is None


def test_every_hand_off_says_its_order():
    orders = {kind: handoff.order for kind, handoff in HANDOFFS.items()}
    concurrent = {ConnectorKind.NIXL_PUSH, ConnectorKind.MOONCAKE}
    assert {kind for kind, order in orders.items() if order is Order.CONCURRENT} == concurrent


@pytest.mark.parametrize(
    ("kind", "tokens", "moved"),
    [
        (ConnectorKind.NIXL_PULL, 300, 256),
        (ConnectorKind.NIXL_PUSH, 257, 256),
        (ConnectorKind.NIXL_PUSH, 128, 0),
        (ConnectorKind.MOONCAKE, 300, 256),
        (ConnectorKind.MULTI, 300, 256),
        (ConnectorKind.SHARED_STORAGE, 128, 0),
        (ConnectorKind.SHARED_STORAGE, 129, 0),
        (ConnectorKind.SHARED_STORAGE, 130, 128),
        (ConnectorKind.SHARED_STORAGE, 256, 128),
        (ConnectorKind.SHARED_STORAGE, 257, 0),
        (ConnectorKind.SHARED_STORAGE, 300, 256),
        (ConnectorKind.LMCACHE, 256, 0),
        (ConnectorKind.LMCACHE, 600, 512),
    ],
)
def test_it_is_known_how_many_tokens_of_a_new_prompt_move_at_least(kind, tokens, moved):
    assert HANDOFFS[kind].movement.moved(tokens, 128) == moved
