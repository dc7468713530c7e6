"""What engines say of themselves, and which of them are paired by it."""

import asyncio
import logging
from dataclasses import replace

import pytest

from proxy.config import ProxyConfig
from proxy.engine import EngineClient
from proxy.errors import EngineFailure
from proxy.health.identity import identify
from proxy.settings import Canary, FailurePolicy
from proxy.topology import Instance, Role
from tests.fakes.engine import FakeEngine
from tests.fakes.wire import Cut
from tests.proxy.conftest import eventually
from tests.proxy.raw_engine import RawEngine

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}


def engine(role: str, version: str = "0.32.0", root: str | None = None, **cache_config: str) -> FakeEngine:
    made = FakeEngine(role)
    made.version, made.root, made.cache_config = version, root, cache_config
    return made


async def pairs(duet) -> dict[tuple[str, str], tuple[str, str]]:
    """Standing and reason of each pair."""
    found = (await duet.client.get("/pairs")).json()["pairs"]
    return {(each["prefill"], each["decode"]): (each["standing"], each["reason"]) for each in found}


def declared(**fingerprints: dict[str, str]):
    """Changes a configuration so that instances have these fingerprints."""

    def change(config: ProxyConfig) -> ProxyConfig:
        instances = tuple(
            replace(each, fingerprint=fingerprints.get(each.name.replace("-", "_"), each.fingerprint))
            for each in config.topology.instances
        )
        return replace(config, topology=replace(config.topology, instances=instances))

    return change


@pytest.fixture
async def client():
    made = EngineClient()
    yield made
    await made.aclose()


async def test_all_that_an_engine_tells_is_read(client):
    async with engine("decode", "0.33.1", "/models/a", block_size="32", kv_cache_layout="LBHNC") as decode:
        decode.adapters = {"sql": "/adapters/sql"}
        facts = await identify(client, Instance("decode-0", Role.DECODE, decode.url), 5)
    assert facts == {
        "vLLM version": "0.33.1",
        "model": "/models/a",
        "served model names": "fake",
        "longest sequence": "2048",
        "adapter sql": "/adapters/sql",
        "block size": "32",
        "KV cache dtype": "auto",
        "prefix hash algorithm": "sha256",
        "KV cache layout": "LBHNC",
        "layers without KV cache dtype": "[]",
        "Mamba cache dtype": "auto",
        "Mamba state dtype": "float32",
    }


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b'{"version": 1, "data": 2}', b'{"data": [1, {"root": null}, {}]}', b"\xff"),
        b"vllm:cache_config_info{block_size} 1\n",
    ],
)
async def test_what_an_engine_does_not_tell_is_left_out(client, body):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        writer.write(head % len(body) + body)

    async with RawEngine(answer, answers=()) as raw:
        assert await identify(client, Instance("decode-0", Role.DECODE, raw.url), 5) == {}


async def test_an_engine_that_refuses_to_tell_is_left_out(client):
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 401 Unauthorized\r\ncontent-length: 15\r\nconnection: close\r\n\r\n{"version":"1"}')

    async with RawEngine(refuse, answers=()) as raw:
        assert await identify(client, Instance("decode-0", Role.DECODE, raw.url), 5) == {}


async def test_an_engine_that_cannot_be_asked_is_told_apart(client):
    with pytest.raises(EngineFailure):
        await identify(client, Instance("decode-0", Role.DECODE, "http://127.0.0.1:1"), 5)


async def test_engines_that_differ_are_not_paired_and_the_reason_is_shown(start, caplog):
    duet = await start(engines=[engine("prefill", block_size="32"), engine("decode", block_size="16")])
    reason = "block size differs: prefill-0 has 32, decode-0 has 16"
    assert await pairs(duet) == {("prefill-0", "decode-0"): ("refused", reason)}
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "no_pair")
    assert duet.prefill.seen == []
    assert (await duet.ready())["modes"] == {"pd": False, "aggregated": True}
    assert [each.getMessage() for each in caplog.records if "no KV goes" in each.getMessage()] == [
        f"no KV goes from prefill-0 to decode-0: {reason}"
    ]


async def test_without_a_fallback_a_request_is_refused_and_only_the_log_has_the_reason(start, caplog):
    caplog.set_level("INFO")
    engines = [engine("prefill", root="/models/a"), engine("decode", root="org/a")]
    duet = await start(engines=engines, policy=FailurePolicy.FAIL)
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 503
    assert "/models/a" not in answer.text
    assert "model differs: prefill-0 has /models/a, decode-0 has org/a" in caplog.text
    assert (await duet.client.get("/ready")).status_code == 503


async def test_during_an_upgrade_only_engines_of_one_version_are_paired(start):
    versions = ["0.32.0", "0.33.0"]
    duet = await start(engines=[engine(role, version) for role in ("prefill", "decode") for version in versions])
    standings = {couple: standing for couple, (standing, _) in (await pairs(duet)).items()}
    assert standings == {
        ("prefill-0", "decode-0"): "untried",
        ("prefill-0", "decode-1"): "refused",
        ("prefill-1", "decode-0"): "refused",
        ("prefill-1", "decode-1"): "untried",
    }
    for _ in range(20):
        answer = await duet.client.post("/v1/completions", json=TEXT)
        assert answer.headers["x-duet-path"] == "pd"
        assert answer.headers["x-duet-prefill"][-1] == answer.headers["x-duet-decode"][-1]
    assert [standing for standing, _ in (await pairs(duet)).values()] == ["working", "refused", "refused", "working"]


async def test_an_engine_that_comes_back_as_another_is_judged_anew(start):
    duet = await start(probe_interval=0.02)

    async def standing() -> str:
        return (await pairs(duet))["prefill-0", "decode-0"][0]

    async def healthy() -> bool:
        return (await duet.ready())["instances"][0]["healthy"]

    for version, expected in (("0.33.0", "refused"), ("0.32.0", "untried")):
        await duet.prefill.stop()
        await eventually(healthy, False)
        duet.prefill.version = version
        await duet.prefill.start()
        await eventually(healthy, True)
        assert await standing() == expected


async def test_weights_that_differ_by_the_configuration_are_refused_until_it_says_otherwise(start):
    duet = await start(follow=True)
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.headers["x-duet-path"] == "pd"
    await duet.reconfigure(declared(prefill_0={"weights": "new"}, decode_0={"weights": "old"}))
    reason = "weights differs: prefill-0 has new, decode-0 has old"
    await eventually(lambda: pairs(duet), {("prefill-0", "decode-0"): ("refused", reason)})
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-bypass"] == "no_pair"

    await duet.reconfigure(declared(decode_0={"weights": "new"}))
    await eventually(lambda: pairs(duet), {("prefill-0", "decode-0"): ("working", "")})
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.headers["x-duet-path"], (await duet.ready())["instances"][0]["healthy"]) == ("pd", True)


async def test_no_canary_goes_between_engines_that_differ_and_one_goes_when_they_agree(start):
    duet = await start(follow=True, canary=Canary(interval=3600), engines=[engine("prefill"), engine("decode", "0.33")])
    proven = await duet.client.post("/pairs/prove")
    (pair,) = proven.json()["pairs"]
    assert (pair["standing"], pair["gets_requests"], pair["proof"]) == ("refused", False, None)
    assert duet.prefill.seen == duet.decode.seen == []

    await duet.decode.stop()
    duet.decode.version = "0.32.0"
    await duet.decode.start()
    await duet.reconfigure(declared(decode_0={"anything": "else"}))
    await eventually(duet.standing, "proven")
    assert (await duet.client.post("/v1/completions", json=TEXT)).headers["x-duet-path"] == "pd"


async def test_what_an_engine_says_counts_more_than_its_configuration(start, caplog):
    duet = await start(follow=True, probe_interval=0.02)
    await duet.reconfigure(declared(prefill_0={"weights": "a"}, decode_0={"weights": "b", "block size": "999"}))
    refused = {("prefill-0", "decode-0"): ("refused", "weights differs: prefill-0 has a, decode-0 has b")}
    await eventually(lambda: pairs(duet), refused)

    async def healthy() -> bool:
        return (await duet.ready())["instances"][1]["healthy"]

    await duet.decode.stop()
    await eventually(healthy, False)
    await duet.decode.start()
    await eventually(healthy, True)
    await eventually(lambda: pairs(duet), refused)
    assert "block size of decode-0 is 16 by its own account, 999 by the configuration" in caplog.text


async def test_an_engine_that_is_too_busy_to_say_what_it_is_serves_and_is_asked_again(start, caplog):
    class Busy(FakeEngine):
        cuts = 3

        async def _answer(self, seen, reply) -> None:
            if seen.path == "/version" and self.cuts:
                self.cuts -= 1
                raise Cut
            await super()._answer(seen, reply)

    busy = Busy("decode")
    busy.version = "0.33.0"
    caplog.set_level(logging.INFO, logger="proxy")
    duet = await start(engines=[FakeEngine("prefill"), busy], probe_interval=0.05)
    assert (await duet.ready())["instances"][1]["healthy"]
    assert "decode-0 does not say what it is" in caplog.text

    async def standing() -> str:
        return (await pairs(duet))["prefill-0", "decode-0"][0]

    await eventually(standing, "refused")
