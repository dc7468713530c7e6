"""What the proxy writes to its standard error."""

import json
import logging
import signal
import sys

import pytest

from proxy.config import ProxyConfig
from proxy.keys import new_key
from proxy.log import JsonLines
from proxy.settings import ClientKey, Log, LogFormat, Settings
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.conftest import topology_of
from tests.proxy.program import running

SECRET = "canary-that-nobody-may-read"
TEXT = {"model": "fake", "prompt": SECRET, "max_tokens": 5}
FIELDS = {
    *("time", "level", "logger", "message", "request_id", "endpoint", "client", "method", "route", "model", "status"),
    *("path", "prefill", "decode", "bypass", "failure", "outcome", "ttft_ms", "total_ms"),
    *("prompt_tokens", "completion_tokens"),
}


@pytest.fixture
def lines():
    """Of one message, as objects."""

    def written(*arguments: object, exc_info: bool = False) -> dict:
        message, *rest = arguments
        error = sys.exc_info() if exc_info else None
        record = logging.LogRecord("some.logger", logging.WARNING, "", 0, message, tuple(rest), error)
        text = JsonLines().format(record)
        assert "\n" not in text
        return json.loads(text)

    return written


def test_a_message_of_several_lines_is_one_line(lines):
    line = lines("said %s", "one\ntwo\x00 “three”")
    assert line["message"] == "said one\ntwo\x00 “three”"
    assert (line["level"], line["logger"]) == ("WARNING", "some.logger")
    assert line["time"].endswith("+00:00")


def test_an_exception_is_in_its_line(lines):
    try:
        raise ValueError("why")
    except ValueError:
        line = lines("failed", exc_info=True)
    assert line["message"] == "failed"
    assert line["exception"].endswith("ValueError: why")


def test_a_line_is_shorter_than_what_is_cut(lines):
    try:
        raise ValueError("\x01" * 100_000)
    except ValueError:
        line = lines("\x01" * 100_000, exc_info=True)
    assert len(json.dumps(line)) < 64 * 1024


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("format", [*LogFormat])
async def test_the_whole_log_is_of_one_format_and_without_prompts_and_keys(tmp_path, format, workers):
    key, digest = new_key()
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        settings = Settings(log=Log(format), client_keys=(ClientKey("team", digest),), workers=workers)
        async with running(ProxyConfig(topology_of([prefill, decode]), settings), tmp_path) as program:
            for _ in range(workers - 1):
                await program.said("listening on")
            headers = {"authorization": f"Bearer {key}", "x-secret": SECRET, "x-request-id": "mine"}
            post = program.client.post
            answer = await post("/v1/completions", json=TEXT | {"stream": True}, headers=headers)
            assert answer.status_code == 200
            joined = {engine.seen[0].header("x-request-id") for engine in (prefill, decode)}
            decode.faults.append(Fault(cut_after=1))
            await post("/v1/completions", json=TEXT, headers=headers)
            assert (await post("/v1/completions", json=TEXT, headers={"x-api-key": SECRET})).status_code == 401
            await program.client.get(f"/v1/a%09b%20c?key={SECRET}", headers=headers)
            await post("/v1/completions", content=SECRET, headers=headers)
            program.signal(signal.SIGTERM)
            assert await program.end() == 0
    assert SECRET not in program.log
    assert key not in program.log
    (internal,) = joined
    assert internal in program.log
    if format is LogFormat.JSON:
        lines = [json.loads(line) for line in program.log.splitlines()]
        assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
        requests = [line for line in lines if line["message"] == "request"]
        assert all(line.keys() == FIELDS for line in requests)
        (first,) = [line for line in requests if line["request_id"] == internal]
        told = {name: first[name] for name in ("client", "method", "route", "status", "path", "prefill", "decode")}
        assert told == {
            **{"client": "team", "method": "POST", "route": "/v1/completions", "status": 200, "path": "pd"},
            **{"prefill": "prefill-0", "decode": "decode-0"},
        }
        assert first["total_ms"] >= first["ttft_ms"] >= 0
        assert "/v1/a%09b%20c" in {line["route"] for line in requests}
    else:
        assert f"request_id={internal} endpoint=completions client=team status=200 path=pd" in program.log


async def test_python_itself_speaks_json_then(tmp_path):
    """A warning and a defect, in a process of its own."""
    import asyncio

    code = (
        "import warnings; from proxy.log import begin; from proxy.settings import Log, LogFormat\n"
        "begin(Log(LogFormat.JSON)); warnings.warn('careful'); raise RuntimeError('why')"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    warned, defect = map(json.loads, said.splitlines())
    assert "careful" in warned["message"]
    assert "RuntimeError: why" in defect["exception"]
    assert process.returncode == 1
