"""The fake engine as a program keeps its promises to those who start it as a child."""

import asyncio
import os
import signal
import sys

import httpx
import pytest


async def start(*argv: str, **env: str) -> tuple[asyncio.subprocess.Process, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.fakes.engine", "--port", "0", "--served-model-name", "m", *argv),
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | env,
    )
    line = (await asyncio.wait_for(process.stderr.readline(), 20)).decode()
    return process, line.strip()


async def end(process: asyncio.subprocess.Process) -> int:
    await asyncio.wait_for(process.communicate(), 20)
    return process.returncode


async def test_it_takes_vllms_arguments_and_stops_when_told():
    process, line = await start("--max-model-len", "9", "--kv-transfer-config", '{"kv_role":"kv_producer"}')
    assert "fake prefill engine listens on port" in line
    process.send_signal(signal.SIGTERM)
    assert await end(process) == 0


async def test_it_can_fail_to_start():
    process, line = await start(FAKE_ENGINE_CRASH_AT_START="no such model")
    assert line == "no such model"
    assert await end(process) == 1


@pytest.mark.parametrize("partial", [{"do_remote_prefill": True}, {"do_remote_prefill": True, "remote_host": "h"}])
async def test_partial_kv_parameters_kill_it(partial):
    process, line = await start("--role", "decode")
    url = f"http://127.0.0.1:{line.split()[-1]}/v1/completions"
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.TransportError):
            await client.post(url, json={"prompt": "x", "kv_transfer_params": partial})
    assert await end(process) == 1


async def test_it_can_ignore_sigterm_and_crash_later():
    process, _ = await start(FAKE_ENGINE_IGNORE_SIGTERM="1", FAKE_ENGINE_CRASH_AFTER="0.2")
    process.send_signal(signal.SIGTERM)
    assert await end(process) == 1
