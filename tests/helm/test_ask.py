"""What ``helm test`` runs, as a process before a real proxy with fake engines."""

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT

import pytest

from proxy.settings import Canary, ClientKey, ConditionalPD, Settings
from tests.fakes.engine import FakeEngine
from tests.helm.charts import CHART
from tests.proxy.conftest import StartDuet, start

__all__ = ["start"]


async def _ask(url: str, *options: str, key: str = "", within: str = "0") -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(CHART / "files/ask.py"), "--url", url, "--model", "fake"),
        *("--within", within, *options),
        env={"DUET_CLIENT_KEY": key},
        stdout=PIPE,
        stderr=STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


async def test_a_pair_that_hands_over_is_proven(start: StartDuet):
    duet = await start(canary=Canary())
    status, said = await _ask(duet.url, "--pd")
    assert status == 0, said
    assert "path pd" in said
    assert "prefill-0 -> decode-0: proven" in said


async def test_a_pair_that_computes_twice_fails(start: StartDuet):
    prefill, decode = FakeEngine("prefill"), FakeEngine("decode")
    decode.recomputes = True
    duet = await start(engines=[prefill, decode], canary=Canary())
    status, said = await _ask(duet.url, "--pd")
    assert status == 1, said


async def test_pd_that_is_bypassed_by_choice_is_proven_all_the_same(start: StartDuet):
    duet = await start(settings=Settings(pd=ConditionalPD(shorter_than=10**6)), canary=Canary())
    status, said = await _ask(duet.url, "--pd")
    assert status == 0, said
    assert "path aggregated" in said
    assert "prefill-0 -> decode-0: proven" in said


async def test_pd_that_is_bypassed_fails(start: StartDuet):
    duet = await start(engines=[FakeEngine("decode")])
    status, said = await _ask(duet.url, "--pd")
    assert status == 1
    assert "the proxy sees no pair of a prefill and a decode engine" in said


async def test_what_stays_wrong_is_said_once_while_it_lasts(start: StartDuet):
    decode = FakeEngine("decode")
    duet = await start(engines=[decode])
    _, said = await _ask(duet.url, "--pd", within="3")
    assert said.count("; asking again") == 1, said


async def test_a_pair_that_is_not_proven_yet_is_asked_again(start: StartDuet):
    decode = FakeEngine("decode")
    decode.recomputes = True
    duet = await start(engines=[FakeEngine("prefill"), decode], canary=Canary())
    asked = asyncio.create_task(_ask(duet.url, "--pd", within="60"))
    await decode.saw(1)
    await decode.until(lambda: len(decode.seen) >= 2)
    decode.recomputes = False
    status, said = await asked
    assert status == 0, said


async def test_an_engine_alone_has_to_answer(start: StartDuet):
    duet = await start(engines=[FakeEngine("aggregated")])
    status, said = await _ask(duet.url)
    assert status == 0, said
    assert "path aggregated" in said


async def test_a_proxy_that_is_not_there_fails():
    status, said = await _ask("http://127.0.0.1:9")
    assert status == 1
    assert "http://127.0.0.1:9 answers not: " in said


@pytest.mark.parametrize(("key", "said_of_it"), [("wrong", "knows not this one"), ("", "none is there")])
async def test_a_key_that_is_missing_is_said(start: StartDuet, key: str, said_of_it: str):
    keys = (ClientKey(name="web", sha256="0" * 64),)
    duet = await start(settings=Settings(client_keys=keys))
    status, said = await _ask(duet.url, "--pd", key=key)
    assert status == 1
    assert said_of_it in said
    assert "test.keys.existingSecret" in said
