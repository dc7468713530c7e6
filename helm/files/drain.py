"""Before an engine is told to end: wait until it has nothing left, or the time is up. Only the standard library.

The proxy sees within a second that the pod is going and sends nothing new. What runs is finished; a prefill engine
stays until its KV cache was read, too. Whatever happens, the status is 0: an engine that cannot be asked ends as usual.
"""

import argparse
import http.client
import re
import socket
import ssl
import time
import urllib.error
import urllib.request

REQUESTS = ("vllm:num_requests_running", "vllm:num_requests_waiting")
KV = "vllm:kv_cache_usage_perc"
"""Blocks that decode has not read yet count as used, those that are only cached do not."""


def main(argv=None):
    """Wait and tell the container's log why."""
    arguments = _arguments(argv)
    began = time.monotonic()
    deadline = began + arguments.within

    def tell(what):
        _tell(arguments.log, what)

    tell("is to end: waits up to %g s until nothing is left" % arguments.within)
    time.sleep(min(arguments.settle, arguments.within))
    quiet, said = 0, ""
    while True:
        left = remains(arguments.port, arguments.role)
        quiet = 0 if left else quiet + 1
        if left and left != said:
            tell(left)
            said = left
        if left is None or quiet >= arguments.looks:
            tell("nothing is left after %.1f s" % (time.monotonic() - began))
            return
        if time.monotonic() + arguments.every > deadline:
            tell("time is up after %g s" % arguments.within)
            return
        time.sleep(arguments.every)


def remains(port, role):
    """What an engine still has, in words; empty for nothing, and None if nobody listens there any more."""
    try:
        return _left(_metrics(port), role)
    except ConnectionRefusedError:
        return None
    except (OSError, ValueError, http.client.HTTPException) as error:
        return "it does not tell what it has: %s" % error


def _left(text, role):
    requests = [value for name in REQUESTS for value in _values(text, name)]
    if not requests:
        return "it does not tell its requests"
    if any(requests):
        return "%g requests" % sum(requests)
    if role != "prefill":
        return ""
    usage = _values(text, KV)
    if not usage:
        return "it does not tell what its KV cache holds"
    return "%.1f%% of its KV cache waits for decode" % (100 * max(usage)) if any(usage) else ""


def _metrics(port):
    """The text of /metrics, by whichever way it is served: addresses and TLS are the engine's options."""
    host = _host(port)
    try:
        return _get("http://%s:%d/metrics" % (host, port))
    except urllib.error.HTTPError as error:
        raise ValueError("status %d" % error.code) from None
    except (OSError, http.client.HTTPException):
        return _get("https://%s:%d/metrics" % (host, port))


def _host(port):
    failure = None
    for host in ("127.0.0.1", "::1"):
        try:
            socket.create_connection((host, port), timeout=5).close()
        except OSError as error:
            failure = failure or error
        else:
            return "[%s]" % host if ":" in host else host
    raise failure


def _get(url):
    certificate_of_another_name = ssl._create_unverified_context()
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=certificate_of_another_name)
    )
    with opener.open(url, timeout=5) as answer:
        return answer.read().decode()


def _values(text, name):
    return [float(value) for value in re.findall(r"^%s(?:\{.*\})? (\S+)" % re.escape(name), text, re.MULTILINE)]


def _tell(log, what):
    try:
        # As one write: the engine writes there, too.
        with open(log, "ab", buffering=0) as file:
            file.write(("drain: %s\n" % what).encode())
    except OSError:
        pass  # some containers do not allow it


def _arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--within", type=float, required=True, help="seconds")
    parser.add_argument("--role", required=True)
    parser.add_argument("--settle", type=float, default=3, help="seconds in which new requests may still come")
    parser.add_argument("--every", type=float, default=1, help="seconds between two looks")
    parser.add_argument("--looks", type=int, default=3, help="in a row that find nothing")
    # What a hook prints is nowhere to be seen; this is the engine's own output.
    parser.add_argument("--log", default="/proc/1/fd/1", help="where to tell what is waited for")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
