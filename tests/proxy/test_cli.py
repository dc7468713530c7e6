"""The program."""

import asyncio
import signal
import socket
import sys

import httpx
import pytest

from proxy.cli import listen, main
from proxy.config import ProxyConfig, dump
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import topology_of


@pytest.fixture
def config_file(tmp_path):
    file = tmp_path / "proxy.json"
    file.write_text(dump(ProxyConfig(topology_of([]))))
    return file


def test_a_wrong_configuration_is_one_message_and_exit_code_3(tmp_path, capsys):
    assert main(["--config", str(tmp_path / "none.json")]) == 3
    message = capsys.readouterr().err
    assert "none.json" in message
    assert message.count("\n") == 1


def test_a_port_in_use_is_one_message_and_exit_code_4(config_file, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--config", str(config_file), "--port", str(port)]) == 4
    message = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{port}" in message
    assert message.count("\n") == 1


async def test_the_program_serves_until_it_is_told_to_stop(tmp_path):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        file = tmp_path / "proxy.json"
        file.write_text(dump(ProxyConfig(topology_of([prefill, decode]))))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "proxy", "--config", str(file), "--port", "0", stderr=asyncio.subprocess.PIPE
        )
        try:
            line = await asyncio.wait_for(process.stderr.readline(), 20)
            url = line.decode().partition("listening on ")[2].strip()
            async with httpx.AsyncClient(base_url=url, timeout=20, trust_env=False) as client:
                answer = await client.post("/v1/completions", json={"model": "fake", "prompt": "x"})
            assert answer.headers["x-duet-path"] == "pd"
            assert "server" not in answer.headers
            process.send_signal(signal.SIGTERM)
            _, log = await asyncio.wait_for(process.communicate(), 20)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert b"endpoint=completions status=200 path=pd" in log
        assert b"Traceback" not in log


def test_events_of_a_stream_do_not_wait_for_each_others_acknowledgement():
    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
