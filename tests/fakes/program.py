"""The fake engine as a program that takes vLLM's arguments; unknown ones are ignored.

The environment makes it misbehave:

- ``FAKE_ENGINE_START_DELAY``: seconds before it listens
- ``FAKE_ENGINE_GATE``: a file; it listens when that is there and empty. What it says is printed, and it is removed;
  when that begins with ``ERROR``, the engine exits with status 1
- ``FAKE_ENGINE_CRASH_AT_START``: print this on stderr and exit with status 1
- ``FAKE_ENGINE_CRASH_AFTER``: exit with status 1 so many seconds after it began to listen
- ``FAKE_ENGINE_IGNORE_SIGTERM``: 1 to go on after SIGTERM
- ``FAKE_ENGINE_GRANDCHILD``: start a process in a session of its own, which outlives this one, and write its pid into
  the file named here
- ``FAKE_ENGINE_PACE``: seconds before every event of a stream
- ``FAKE_ENGINE_KEEPS_KV``: a file; as long as it is there, a quarter of the KV cache waits for decode, or as much as
  it says: a number, or ``unknown``
- ``FAKE_ENGINE_RECOMPUTES``: 1 to compute prompts itself whose KV it is given
- ``FAKE_ENGINE_METRICS``: a folder; ``/metrics`` ends in what the file ``<role>`` there holds, or of an engine
  that speculates ``<role>-drafting``, if it is there
- ``FAKE_ENGINE_FLOOD``: 1 to print without a pause
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.fakes.engine import FakeEngine

_SIDE_CHANNEL = "VLLM_NIXL_SIDE_CHANNEL_PORT"
_ROLES = {"kv_producer": "prefill", "kv_consumer": "decode"}


def main(argv: list[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT."""
    arguments = _arguments(argv)
    crash = os.environ.get("FAKE_ENGINE_CRASH_AT_START")
    if crash is not None:
        sys.stderr.write(crash + "\n")
        sys.exit(1)
    asyncio.run(_serve(arguments))


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--model", default="fake")
    parser.add_argument("--served-model-name")
    parser.add_argument("--kv-transfer-config", type=json.loads, default={})
    parser.add_argument("--block-size")
    parser.add_argument("--speculative-config")
    parser.add_argument("--role", choices=("prefill", "decode", "aggregated"))
    parser.add_argument("--side-channel-port", type=int, default=int(os.environ.get(_SIDE_CHANNEL, "5600")))
    return parser.parse_known_args(argv)[0]


async def _serve(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _asked_to_stop, number, stop)
    _start_grandchild()
    await asyncio.sleep(float(os.environ.get("FAKE_ENGINE_START_DELAY", "0")))
    await _pass_gate()
    engine = FakeEngine(
        arguments.role or _ROLES.get(arguments.kv_transfer_config.get("kv_role"), "aggregated"),
        model=arguments.served_model_name or arguments.model,
        host=arguments.host,
        port=arguments.port,
        side_channel_port=arguments.side_channel_port,
        pace=float(os.environ.get("FAKE_ENGINE_PACE", "0")),
    )
    engine.root = arguments.model
    if arguments.block_size is not None:
        engine.cache_config["block_size"] = arguments.block_size
    engine.recomputes = os.environ.get("FAKE_ENGINE_RECOMPUTES") == "1"
    told = os.environ.get("FAKE_ENGINE_METRICS")
    if told is not None:
        drafts = "-drafting" if arguments.speculative_config else ""
        engine.more_metrics = lambda: _text(Path(told) / f"{engine.role}{drafts}")
    kept = os.environ.get("FAKE_ENGINE_KEEPS_KV")
    if kept is not None:
        engine.usage = lambda: _usage(Path(kept))
    async with engine, contextlib.AsyncExitStack() as stack:
        if engine.role == "prefill" and _SIDE_CHANNEL in os.environ:
            # As NIXL's: somebody listens there.
            server = await asyncio.start_server(lambda _, w: w.close(), arguments.host, arguments.side_channel_port)
            await stack.enter_async_context(server)
        sys.stderr.write(f"INFO: fake {engine.role} engine listens on port {engine.port}\n")
        sys.stderr.flush()
        crash_after = os.environ.get("FAKE_ENGINE_CRASH_AFTER")
        waits = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(engine.died.wait())]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if crash_after is None else float(crash_after)):
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if not stop.is_set():
            sys.stderr.write("ERROR: fake engine died\n")
            sys.stderr.flush()
            os._exit(1)


async def _pass_gate() -> None:
    gate = os.environ.get("FAKE_ENGINE_GATE")
    if gate is None:
        return
    while True:
        if _is_open(Path(gate)):
            return
        await asyncio.sleep(0.02)


def _is_open(gate: Path) -> bool:
    try:
        said = gate.read_text()
    except FileNotFoundError:
        return False
    if not said:
        return True
    gate.unlink()
    sys.stderr.write(said)
    sys.stderr.flush()
    if said.startswith("ERROR"):
        os._exit(1)
    return False


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""


def _usage(file: Path) -> float | None:
    try:
        said = file.read_text()
    except FileNotFoundError:
        return 0.0
    return None if said == "unknown" else float(said or 0.25)


def _asked_to_stop(number: int, stop: asyncio.Event) -> None:
    if number == signal.SIGTERM and os.environ.get("FAKE_ENGINE_IGNORE_SIGTERM") == "1":
        return
    stop.set()


def _start_grandchild() -> None:
    if os.environ.get("FAKE_ENGINE_FLOOD") == "1":
        subprocess.Popen(["yes", "a line that says nothing"])
    pid_file = os.environ.get("FAKE_ENGINE_GRANDCHILD")
    if pid_file is not None:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        Path(pid_file).write_text(str(child.pid))
