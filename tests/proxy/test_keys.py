"""Keys of clients and of engines."""

import logging

import pytest

from proxy.cli import main
from proxy.config import ProxyConfig, dump
from proxy.keys import Keyring, new_key
from proxy.settings import ClientKey, Settings
from tests.proxy.conftest import topology_of

TEXT = {"model": "fake", "prompt": "x", "max_tokens": 2}
KEY, DIGEST = new_key()
OTHER_KEY, OTHER_DIGEST = new_key()
SETTINGS = Settings(client_keys=(ClientKey("alice", DIGEST), ClientKey("bob", OTHER_DIGEST)))
WITH_KEY = {"authorization": f"Bearer {KEY}"}
ROUTES = [("POST", "/v1/completions"), ("POST", "/echo"), ("GET", "/v1/models"), ("GET", "/metrics"), ("GET", "/none")]


@pytest.fixture
async def guarded(start):
    """A proxy that asks for keys."""
    return await start(settings=SETTINGS)


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer no"}, {"authorization": KEY}, {"x-api-key": "no"}])
@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_without_a_valid_key_nothing_is_answered(guarded, method, path, headers):
    answer = await guarded.client.request(method, path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["x-request-id"]
    assert (answer.json()["error"]["type"], answer.json()["error"]["code"]) == ("AuthenticationError", 401)
    assert guarded.prefill.seen == guarded.decode.seen == guarded.decode.echoed == []
    assert len(guarded.decode.asked_models) == 1  # by the proxy itself, before it served


@pytest.mark.parametrize("headers", [WITH_KEY, {"authorization": f"bearer  {KEY}"}, {"x-api-key": KEY}])
async def test_a_valid_key_opens_the_proxy_and_reaches_no_engine(guarded, headers, caplog):
    caplog.set_level(logging.DEBUG)
    answer = await guarded.client.post("/v1/completions", json=TEXT, headers=headers)
    assert answer.headers["x-duet-path"] == "pd"
    assert (await guarded.client.post("/echo", content=b"x", headers=headers)).status_code == 200
    for seen in (*guarded.prefill.seen, *guarded.decode.seen, *guarded.decode.echoed):
        assert KEY not in str(seen.headers)
        assert seen.header("authorization") is None
        assert seen.header("x-api-key") is None
    assert "client=alice" in caplog.text
    assert KEY not in caplog.text


async def test_who_only_probes_needs_no_key_and_learns_no_addresses(guarded):
    assert (await guarded.client.get("/health")).status_code == 200
    assert (await guarded.client.get("/ready")).json() == {"ready": True, "draining": False}
    assert "instances" in (await guarded.client.get("/ready", headers=WITH_KEY)).json()
    assert "duet_requests" in (await guarded.client.get("/metrics", headers=WITH_KEY)).text


async def test_a_browser_may_ask_beforehand_without_a_key(guarded):
    preflight = {"origin": "http://x", "access-control-request-method": "POST"}
    assert (await guarded.client.options("/echo", headers=preflight)).status_code == 200
    assert (await guarded.client.options("/echo", headers={"origin": "http://x"})).status_code == 401
    with_body = await guarded.client.request("OPTIONS", "/echo", headers=preflight, content=b"kept until it ends")
    assert with_body.status_code == 401


async def test_without_keys_what_the_client_sends_is_for_the_engines(duet):
    headers = {"authorization": "Bearer k", "x-api-key": "a"}
    await duet.client.post("/v1/completions", json=TEXT, headers=headers)
    for seen in (duet.prefill.seen[0], duet.decode.seen[0]):
        assert (seen.header("authorization"), seen.header("x-api-key")) == ("Bearer k", "a")


@pytest.mark.parametrize("keys", [(), SETTINGS.client_keys])
async def test_the_engines_own_key_takes_the_place_of_the_clients_on_every_way(start, monkeypatch, keys):
    monkeypatch.setenv("OF_THE_ENGINES", "secret")
    duet = await start(settings=Settings(client_keys=keys, engine_key_env="OF_THE_ENGINES"))
    await duet.client.post("/v1/completions", json=TEXT, headers=WITH_KEY)
    await duet.client.post("/echo", content=b"x", headers=WITH_KEY)
    for seen in (*duet.prefill.seen, *duet.decode.seen, *duet.decode.echoed):
        assert [value for name, value in seen.headers if name == "authorization"] == ["Bearer secret"]


@pytest.mark.parametrize("value", [None, "", "a\nb"])
def test_a_missing_engine_key_is_one_message_and_exit_code_3(tmp_path, capsys, monkeypatch, value):
    if value is not None:
        monkeypatch.setenv("OF_THE_ENGINES", value)
    file = tmp_path / "proxy.json"
    file.write_text(dump(ProxyConfig(topology_of([]), Settings(engine_key_env="OF_THE_ENGINES"))))
    assert main(["--config", str(file)]) == 3
    message = capsys.readouterr().err
    assert "OF_THE_ENGINES" in message
    assert message.count("\n") == 1


def test_the_program_makes_a_key_with_its_line_for_the_profile(capsys):
    assert main(["--new-key", "carol"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    key = first.split()[-1]
    digest = second.partition("sha256: ")[2].rstrip("}")
    assert "{name: carol, sha256: " in second
    assert Keyring([ClientKey("carol", digest)]).owner([(b"authorization", f"Bearer {key}".encode())]) == "carol"


def test_two_clients_with_one_name_or_one_key_are_refused(tmp_path, capsys):
    one = ClientKey("a", DIGEST)
    for keys in ((one, ClientKey("a", OTHER_DIGEST)), (one, ClientKey("b", DIGEST))):
        file = tmp_path / "proxy.json"
        file.write_text(dump(ProxyConfig(topology_of([]), Settings(client_keys=keys))))
        assert main(["--config", str(file)]) == 3
        assert "used twice" in capsys.readouterr().err
