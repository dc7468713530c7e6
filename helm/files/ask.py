"""`helm test`: does an answer come, and by prefill and decode where the plan has them? Only the standard library.

Asks for a completion through the proxy and, with --pd, for the proof of every pair. Exits with 1 and says why not.
"""

import argparse
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

PROMPT = "Count: " + " ".join(str(number) for number in range(100)) + " What comes next?"
BY_CHOICE = ("short_prompt", "cached_prompt", "idle_decode")
"""Reasons for which a profile lets decode answer alone."""


def main(argv=None):
    """Print what was found. Pairs are proven when they are new, so at first there may be none that works."""
    arguments = _arguments(argv)
    deadline = time.monotonic() + arguments.within
    told = None
    while True:
        problem = look(arguments)
        if problem is None:
            return
        if time.monotonic() > deadline:
            sys.exit(problem)
        if problem != told:
            print("%s; asking again" % problem, flush=True)
            told = problem
        time.sleep(2)


def look(arguments):
    """What is wrong, or None."""
    if arguments.pd:
        problem = prove(arguments.operators or arguments.url)
        if problem is not None:
            return problem
    return ask(arguments)


def prove(url):
    """Send a canary through every pair: what is wrong with them, or None."""
    key = os.environ.get("DUET_OPERATOR_KEY") or os.environ.get("DUET_CLIENT_KEY")
    status, text, _ = send(url + "/pairs/prove", {}, key)
    if status in (401, 403):
        print("not proven: that takes an operator's key, test.keys.existingSecret")
        return None
    if status != 200:
        return "%s/pairs/prove answers %s" % (url, "%d: %s" % (status, text) if status else "not: " + text)
    pairs = json.loads(text)["pairs"]
    if not pairs:
        return "the proxy sees no pair of a prefill and a decode engine: `kubectl get pods` shows which is not ready"
    wrong = 0
    for pair in pairs:
        proof = pair["proof"] or {"verdict": "undecided", "reason": pair["reason"], "tokens": 0}
        found = (pair["prefill"], pair["decode"], proof["verdict"], proof["tokens"], proof["reason"])
        print("%s -> %s: %s, %d KV tokens %s" % found)
        # Of a pair that is away, or too busy, nothing is known; engines may be unable to say.
        wrong += proof["verdict"] not in ("proven", "undecided", "impossible")
    return "%d of %d pairs do not hand over KV" % (wrong, len(pairs)) if wrong else None


def ask(arguments):
    """Ask for a completion: what is wrong with the answer, or None."""
    body = {"model": arguments.model, "prompt": PROMPT, "max_tokens": 8, "temperature": 0}
    key = os.environ.get("DUET_CLIENT_KEY")
    status, text, headers = send(arguments.url + "/v1/completions", body, key)
    if status == 401:
        sys.exit(
            "the proxy wants a client's key, and %s: name a Secret of this namespace in test.keys.existingSecret, and "
            "in test.keys.client where in it the key is" % ("knows not this one" if key else "none is there")
        )
    if status != 200:
        return "%s answers %s" % (arguments.url, "%d: %s" % (status, text) if status else "not: " + text)
    path, bypass = headers.get("X-Duet-Path"), headers.get("X-Duet-Bypass")
    print("answered by %s, path %s: %r" % (arguments.model, path, json.loads(text)["choices"][0]["text"][:60]))
    if arguments.pd and path != "pd" and bypass not in BY_CHOICE:
        return "prefill was bypassed: %s" % bypass
    if path == "pd":
        print("prefill %s, decode %s" % (headers.get("X-Duet-Prefill"), headers.get("X-Duet-Decode")))
    return None


def send(url, body, key):
    """Status, text and headers of the answer to a POST; status 0 and the reason when there is none."""
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = "Bearer " + key
    certificate_of_the_clients_name = ssl._create_unverified_context()
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=certificate_of_the_clients_name)
    )
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with opener.open(request, timeout=120) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace"), error.headers
    except OSError as error:
        return 0, str(error), {}


def _arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="of the proxy")
    parser.add_argument("--operators", help="its other address, if it has one")
    parser.add_argument("--model", required=True)
    parser.add_argument("--pd", action="store_true", help="a pair of prefill and decode has to answer")
    parser.add_argument("--within", type=float, default=120, help="seconds in which it has to go well once")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
