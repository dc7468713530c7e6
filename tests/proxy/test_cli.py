"""The program."""

import resource
import signal
import socket

import pytest

from proxy.cli import listen, main
from proxy.config import ProxyConfig, dump
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import topology_of
from tests.proxy.program import running


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
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(ProxyConfig(topology_of([prefill, decode])), tmp_path) as program,
    ):
        answer = await program.client.post("/v1/completions", json={"model": "fake", "prompt": "x"})
        assert answer.headers["x-duet-path"] == "pd"
        assert "server" not in answer.headers
        program.signal(signal.SIGTERM)
        assert await program.end() == 0
    assert "endpoint=completions client=- status=200 path=pd" in program.log
    assert "Traceback" not in program.log


def test_events_of_a_stream_do_not_wait_for_each_others_acknowledgement():
    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


async def test_the_program_takes_as_many_connections_as_the_system_lets_it(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        async with FakeEngine() as engine, running(ProxyConfig(topology_of([engine])), tmp_path) as program:
            assert resource.prlimit(program.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
