"""What `launcher status` says of a deployment, by what its processes answer."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from launcher.local import status
from launcher.local.deployment import Deployment, InstanceState, State
from launcher.local.run_directory import RunDirectory

FROZEN = "it has work, but none of its counters moves"


@contextmanager
def answering(status_code: int, body: bytes) -> Iterator[str]:
    """A server that answers everything so; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status_code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Not on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("ready", "shown"),
    [
        ({"ready": False, "instances": [{"name": "decode-0", "healthy": False, "reason": FROZEN}]}, FROZEN),
        ({"ready": True, "instances": [{"name": "decode-0", "healthy": True, "reason": ""}]}, "ok"),
        ({"ready": True, "draining": False}, "ok"),
        (["not what a proxy says"], "ok"),
    ],
)
def test_an_engine_that_answers_but_stands_still_is_shown_as_the_proxy_sees_it(tmp_path: Path, ready, shown):
    report = told(tmp_path, 200, ready)
    assert [each.health for each in report.instances] == [shown, "ok"]
    assert report.healthy is (shown == "ok")


def test_what_is_drained_is_marked_and_why_the_proxy_cannot_serve_is_said(tmp_path: Path):
    ready = {"ready": False, "instances": [{"name": "decode-0", "healthy": True, "reason": "", "draining": True}]}
    engine, proxy = told(tmp_path, 503, ready).instances
    assert (engine.drained, engine.health) == (True, "ok")
    assert (proxy.drained, proxy.health) == (False, "HTTP 503: none that it could send requests to (decode-0)")
    _, proxy = told(tmp_path, 503, {"ready": False, "draining": True}).instances
    assert proxy.health == "HTTP 503: it is being stopped"


def told(folder: Path, status_code: int, ready: object) -> status.StatusReport:
    """The status of an engine that answers and of a proxy that says this of its readiness."""
    directory = RunDirectory(folder)
    with (
        answering(200, b"") as engine,
        answering(status_code, json.dumps(ready).encode()) as proxy,
        directory.hold(),
    ):
        instances = (
            InstanceState("decode-0", "decode", engine, State.READY, pid=1),
            InstanceState("proxy", "proxy", proxy, State.READY, pid=1),
        )
        pid = directory.holder()
        assert pid is not None
        directory.write_state(Deployment("demo", pid, 0.0, "mark", proxy, "m", True, 10.0, instances))
        return asyncio.run(status.gather(directory))
