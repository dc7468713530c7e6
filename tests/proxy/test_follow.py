"""The configuration file changes while the proxy runs."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.config import ProxyConfig, dump
from proxy.engine import EngineClient
from proxy.follow import ConfigFollower, restart_needed
from proxy.health.monitor import HealthMonitor
from proxy.pool import Pool
from proxy.settings import FailurePolicy, Settings
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import topology_of

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}


def write(path: Path, text: str) -> None:
    """As editors and Kubernetes do it: another file takes the name."""
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)


@pytest.fixture
async def three(tmp_path):
    """A prefill and two decode engines, a pool, and the follower of its file."""
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as d0, FakeEngine("decode") as d1:
        config = ProxyConfig(topology_of([prefill, d0, d1]))
        file = tmp_path / "proxy.json"
        file.write_text(dump(config))
        pool, client = Pool(config), EngineClient()
        monitor = HealthMonitor(pool, client, interval=60, patience=2)
        await monitor.check()
        yield config, file, pool, ConfigFollower(file, config, pool, monitor)
        await client.aclose()


def usable(pool: Pool) -> list[str]:
    return [member.instance.name for member in pool.members if member.usable]


async def test_an_instance_is_drained_and_comes_back(three):
    config, file, pool, follower = three
    write(file, dump(replace(config, draining=("decode-0",))))
    await follower.look()
    assert usable(pool) == ["prefill-0", "decode-1"]
    write(file, dump(config))
    await follower.look()
    assert usable(pool) == ["prefill-0", "decode-0", "decode-1"]


async def test_an_instance_is_taken_away_and_added_and_the_others_keep_their_state(three):
    config, file, pool, follower = three
    kept = pool.members[0]
    kept.in_flight = 7
    fewer = replace(config.topology, instances=config.topology.instances[:2])
    write(file, dump(replace(config, topology=fewer)))
    await follower.look()
    assert usable(pool) == ["prefill-0", "decode-0"]
    write(file, dump(config))
    await follower.look()
    assert usable(pool) == ["prefill-0", "decode-0", "decode-1"]
    assert pool.members[0] is kept


@pytest.mark.parametrize("text", ["{", "{}", None])
async def test_a_faulty_file_changes_nothing_and_is_reported_until_it_is_right(three, text):
    config, file, pool, follower = three
    if text is None:
        file.unlink()
    else:
        write(file, text)
    await follower.look()
    assert usable(pool) == ["prefill-0", "decode-0", "decode-1"]
    assert "keeping the configuration as it was" in follower.problem
    write(file, dump(config))
    await follower.look()
    assert follower.problem == ""


async def test_following_goes_on_after_a_defect(three, monkeypatch, caplog):
    config, file, pool, follower = three
    monkeypatch.setattr("proxy.follow.INTERVAL", 0)
    failed = asyncio.Event()

    def fail(_: ProxyConfig) -> None:
        failed.set()
        raise RuntimeError

    with monkeypatch.context() as broken:
        broken.setattr(pool, "follow", fail)
        write(file, dump(replace(config, draining=("decode-0",))))
        running = asyncio.create_task(follower.run())
        await failed.wait()
    write(file, dump(replace(config, draining=("decode-1",))))
    await follower.look()
    assert usable(pool) == ["prefill-0", "decode-0"]
    assert not running.done()
    assert "following it failed" in caplog.text
    running.cancel()


def test_settings_that_are_read_at_the_start_only_are_named():
    running = ProxyConfig(topology_of([]))
    wanted = replace(running, settings=Settings(failure_policy=FailurePolicy.FAIL, port=1))
    assert restart_needed(running, wanted) == ["port", "failure_policy"]


async def test_a_stream_goes_on_while_its_instance_is_taken_away(start):
    duet = await start(engines=[FakeEngine("prefill"), FakeEngine("decode")], follow=True)
    gate = asyncio.Semaphore(1)
    duet.decode.faults.append(Fault(gate=gate))
    async with duet.client.stream("POST", "/v1/completions", json=TEXT | {"stream": True}) as running:
        lines = running.aiter_lines()
        await anext(lines)
        await duet.reconfigure(lambda config: replace(config, draining=("decode-0",)))
        refused = await duet.client.post("/v1/completions", json=TEXT)
        assert refused.status_code == 503
        for _ in range(20):
            gate.release()
        assert "data: [DONE]" in [line async for line in lines]
