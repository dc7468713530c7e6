"""Who may act."""

import pytest

from proxy.config import ProxyConfig
from proxy.keys import new_key
from proxy.settings import Admin, Canary, ClientKey, Settings
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import topology_of
from tests.proxy.program import running

CLIENT, CLIENT_DIGEST = new_key()
OPERATOR, OPERATOR_DIGEST = new_key()
CLIENTS = (ClientKey("alice", CLIENT_DIGEST),)
OPERATORS = (ClientKey("olga", OPERATOR_DIGEST),)
TEXT = {"model": "fake", "prompt": "x", "max_tokens": 2}


def bearing(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def test_to_act_an_operators_key_is_needed_and_to_look_is_not(start):
    duet = await start(settings=Settings(admin_keys=OPERATORS), canary=Canary())
    for headers in ({}, bearing("no"), bearing(CLIENT)):
        refused = await duet.client.post("/pairs/prove", headers=headers)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert "proxy.admin_keys" in refused.json()["error"]["message"]
        assert (await duet.client.get("/overview", headers=headers)).json()["proxy"]["actions"] == "locked"
    assert (await duet.client.post("/pairs/prove", headers=bearing(OPERATOR))).status_code == 200
    assert (await duet.client.get("/overview", headers=bearing(OPERATOR))).json()["proxy"]["actions"] == "unlocked"


async def test_without_operators_keys_whoever_may_look_may_act(start):
    duet = await start(settings=Settings(client_keys=CLIENTS), canary=Canary())
    assert (await duet.client.post("/pairs/prove")).status_code == 401
    assert (await duet.client.post("/pairs/prove", headers=bearing(CLIENT))).status_code == 200


@pytest.mark.parametrize("path", ["/overview", "/pairs", "/metrics"])
async def test_an_operator_may_look_where_clients_need_a_key(start, path):
    duet = await start(settings=Settings(client_keys=CLIENTS, admin_keys=OPERATORS), canary=Canary())
    assert (await duet.client.get(path)).status_code == 401
    assert (await duet.client.get(path, headers=bearing(OPERATOR))).status_code == 200
    assert "instances" in (await duet.client.get("/ready", headers=bearing(OPERATOR))).json()


async def test_an_operators_key_sends_no_requests(start):
    duet = await start(settings=Settings(client_keys=CLIENTS, admin_keys=OPERATORS))
    for route in ("/v1/completions", "/echo"):
        assert (await duet.client.post(route, json=TEXT, headers=bearing(OPERATOR))).status_code == 401
    assert duet.decode.seen == duet.decode.echoed == []


async def test_an_operators_key_reaches_no_engine(start):
    duet = await start(settings=Settings(admin_keys=OPERATORS))
    assert (await duet.client.post("/v1/completions", json=TEXT, headers=bearing(OPERATOR))).status_code == 200
    assert (await duet.client.post("/v1/completions", json=TEXT, headers=bearing(CLIENT))).status_code == 200
    assert duet.decode.seen[0].header("authorization") is None
    assert duet.decode.seen[1].header("authorization") == f"Bearer {CLIENT}"


async def test_the_address_of_operators_asks_for_the_key_too(tmp_path, unused_tcp_port):
    settings = Settings(admin=Admin(unused_tcp_port), admin_keys=OPERATORS)
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(ProxyConfig(topology_of([prefill, decode]), settings), tmp_path, canaries=True) as program,
    ):
        admin = f"http://127.0.0.1:{unused_tcp_port}"
        assert (await program.client.post(f"{admin}/pairs/prove")).status_code == 401
        assert (await program.client.post(f"{admin}/pairs/prove", headers=bearing(OPERATOR))).status_code == 200
        assert (await program.client.get(f"{admin}/pairs")).status_code == 200
        assert (await program.client.post("/pairs/prove", headers=bearing(OPERATOR))).status_code == 404
        assert OPERATOR not in program.log
