"""The end of a deployment while a request runs."""

import http.client
import json
import signal
from contextlib import closing

from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import wait_until

# So long an answer fills every buffer on its way: it runs until it is read.
BODY = json.dumps({"model": "fake", "prompt": "one two", "max_tokens": 2000, "n": 40, "stream": True})


def ask(port: int) -> http.client.HTTPConnection:
    """A request of which the answer has begun."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/v1/completions", BODY, {"content-type": "application/json"})
    return connection


def refuses(port: int) -> bool:
    """Whether the proxy takes no new work."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("GET", "/ready")
        return bool(json.loads(connection.getresponse().read())["draining"])


def test_a_stream_that_runs_comes_to_its_end_before_the_engines_do(launch: Launch, proxy_port: int):
    running = launch("--set", "proxy.drain=60")
    running.wait_ready()
    with closing(ask(proxy_port)) as connection:
        answer = connection.getresponse()
        running.send(signal.SIGTERM)
        wait_until(lambda: refuses(proxy_port))
        assert answer.read().endswith(b"data: [DONE]\n\n")
    assert running.result() == 0


def test_a_second_signal_breaks_it_off(launch: Launch, proxy_port: int):
    running = launch("--set", "proxy.drain=3600")
    running.wait_ready()
    assert running.state()["stops_within"] > 3600
    with closing(ask(proxy_port)) as connection:
        connection.getresponse()
        running.send(signal.SIGINT)
        wait_until(lambda: refuses(proxy_port))
        running.send(signal.SIGINT)
        assert running.result() == 0
