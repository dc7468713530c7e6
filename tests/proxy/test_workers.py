"""Several processes that serve one address."""

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

import httpx
import psutil
from prometheus_client.parser import text_string_to_metric_families

from proxy.cli import main
from proxy.config import ProxyConfig, dump
from proxy.settings import Settings
from proxy.workers import GAVE_UP, Workers
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import eventually, topology_of
from tests.proxy.program import Program, running

TEXT = {"model": "fake", "prompt": "x", "max_tokens": 2}


async def metric(program: Program, name: str) -> float:
    """The sum of a metric's samples, as one worker tells it: over a new connection, so it may be any of them."""
    async with httpx.AsyncClient(base_url=program.client.base_url, trust_env=False, timeout=60) as client:
        text = (await client.get("/metrics")).text
    return sum(s.value for family in text_string_to_metric_families(text) for s in family.samples if s.name == name)


def workers_of(program: Program) -> list[psutil.Process]:
    return psutil.Process(program.pid).children()


def is_there(folder: str) -> bool:
    return Path(folder).exists()


async def test_metrics_are_the_sums_of_all_workers_also_of_those_that_died(tmp_path):
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(ProxyConfig(topology_of([prefill, decode]), Settings(workers=2)), tmp_path) as program,
    ):
        await program.said("listening on")
        assert len(workers_of(program)) == 2
        folder = workers_of(program)[0].environ()["PROMETHEUS_MULTIPROC_DIR"]

        decode.faults.append(Fault(hang=True))
        hanging = asyncio.create_task(program.client.post("/v1/completions", json=TEXT))
        await decode.saw()
        await eventually(lambda: metric(program, "duet_in_flight"), 1)
        for _ in range(20):
            async with httpx.AsyncClient(base_url=program.client.base_url, trust_env=False, timeout=60) as client:
                assert (await client.post("/v1/completions", json=TEXT)).headers["x-duet-path"] == "pd"
        for _ in range(5):
            await eventually(lambda: metric(program, "duet_requests_total"), 20)
            assert await metric(program, "duet_request_duration_seconds_count") == 20
            assert await metric(program, "duet_instance_healthy") == 2

        for worker in workers_of(program):
            worker.kill()
        await asyncio.wait([hanging])
        assert isinstance(hanging.exception(), httpx.TransportError)
        for _ in range(2):
            await program.said("listening on")  # the next two
        assert await metric(program, "duet_requests_total") == 20
        await eventually(lambda: metric(program, "duet_in_flight"), 0)

        program.signal(signal.SIGTERM)
        assert await program.end() == 0
        assert not is_there(folder)
    assert "Traceback" not in program.log


async def test_health_is_still_probed_and_told_when_metrics_cannot_be_written(tmp_path):
    async with FakeEngine() as engine:
        config = ProxyConfig(topology_of([engine]), Settings(workers=2, probe_interval=0.1))
        async with running(config, tmp_path) as program:
            await program.said("listening on")
            shutil.rmtree(workers_of(program)[0].environ()["PROMETHEUS_MULTIPROC_DIR"])
            await program.said("gauges for /metrics cannot be noted")
            await engine.stop()
            await program.said("is not healthy")
            await eventually(lambda: metric(program, "duet_instance_healthy"), 0)
            await engine.start()
            await program.said("is healthy")
    assert "Traceback" not in program.log


async def test_a_signal_lets_the_requests_of_every_worker_finish(tmp_path):
    gate = asyncio.Semaphore(1)
    async with (
        FakeEngine("decode") as engine,
        running(ProxyConfig(topology_of([engine]), Settings(workers=2)), tmp_path) as program,
    ):
        await program.said("listening on")
        engine.faults.append(Fault(gate=gate))
        async with program.client.stream("POST", "/v1/completions", json={**TEXT, "stream": True}) as answer:
            events = answer.aiter_raw()
            await anext(events)
            program.signal(signal.SIGINT)
            await program.said(r"running requests \(1\)")
            for _ in range(20):
                gate.release()
            assert b"".join([chunk async for chunk in events]).endswith(b"data: [DONE]\n\n")
        assert await program.end() == 0


async def test_when_the_parent_is_killed_the_workers_end(tmp_path):
    async with (
        FakeEngine("decode") as engine,
        running(ProxyConfig(topology_of([engine]), Settings(workers=2)), tmp_path) as program,
    ):
        workers = workers_of(program)
        program.signal(signal.SIGKILL)
        _, alive = await asyncio.to_thread(psutil.wait_procs, workers, timeout=30)
        assert not alive


def test_workers_that_keep_dying_are_given_up_with_the_reason(caplog):
    gone = []
    command = [sys.executable, "-c", "raise SystemExit(7)"]
    assert Workers(command, 2, [], os.environ, gone.append, first_pause=0.01).run() == GAVE_UP
    assert len(gone) >= 5
    assert "ended 5 times within 60 s, the last time with code 7" in caplog.text


def test_a_fault_that_every_worker_would_find_is_told_once(tmp_path, capsys):
    file = tmp_path / "proxy.json"
    file.write_text(dump(ProxyConfig(topology_of([]), Settings(workers=2, engine_key_env="NOT_THERE"))))
    assert main(["--config", str(file), "--port", "0"]) == 3
    assert capsys.readouterr().err.count("NOT_THERE") == 1
