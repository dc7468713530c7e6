"""The end of a deployment while a request runs."""

import http.client
import json
import signal
from contextlib import closing

from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import wait_until

BODY = json.dumps({"model": "fake", "prompt": "one two", "max_tokens": 3}).encode()


def half_a_request(port: int) -> http.client.HTTPConnection:
    """A request whose last byte has not been sent: the proxy has taken it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("POST", "/v1/completions")
    connection.putheader("Content-Length", str(len(BODY)))
    connection.endheaders(BODY[:-1])
    return connection


def refuses(port: int) -> bool:
    """Whether the proxy takes no new work."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("GET", "/ready")
        return bool(json.loads(connection.getresponse().read())["draining"])


def test_a_request_that_runs_is_answered_before_the_engines_end(launch: Launch, proxy_port: int):
    running = launch()
    running.wait_ready()

    with closing(half_a_request(proxy_port)) as connection:
        running.send(signal.SIGTERM)
        wait_until(lambda: refuses(proxy_port))
        connection.send(BODY[-1:])
        answer = connection.getresponse()

    assert (answer.status, answer.getheader("x-duet-path")) == (200, "pd")
    assert running.result() == 0


def test_a_second_signal_breaks_it_off(launch: Launch, proxy_port: int):
    running = launch("--set", "proxy.drain=3600")
    running.wait_ready()
    assert running.state()["stops_within"] > 3600

    with closing(half_a_request(proxy_port)) as connection:
        running.send(signal.SIGINT)
        wait_until(lambda: refuses(proxy_port))
        running.send(signal.SIGINT)
        assert connection.getresponse().status == 503

    assert running.result() == 0
