"""`helm test`: does an answer come, and by prefill and decode where the plan has them? Only the standard library.

Asks for a completion through the proxy and, with --pd, for the proof of every pair. Exits with 1 and says why not.
"""

import argparse
import json
import os
import ssl
import sys
import urllib.error
import urllib.request

# Longer than what a profile may call a short prompt that decode serves alone.
PROMPT = "Count: " + " ".join(str(number) for number in range(400)) + " What comes next?"


def main(argv=None):
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="of the proxy")
    parser.add_argument("--operators", help="its other address, if it has one")
    parser.add_argument("--model", required=True)
    parser.add_argument("--pd", action="store_true", help="a pair of prefill and decode has to answer")
    arguments = parser.parse_args(argv)
    answer, headers = completion(arguments.url, arguments.model)
    path = headers.get("X-Duet-Path")
    print("answered by %s, path %s: %r" % (arguments.model, path, answer["choices"][0]["text"][:60]))
    if not arguments.pd:
        return
    if path != "pd":
        sys.exit("prefill was bypassed: %s" % headers.get("X-Duet-Bypass", "no reason given"))
    print("prefill %s, decode %s" % (headers.get("X-Duet-Prefill"), headers.get("X-Duet-Decode")))
    prove(arguments.operators or arguments.url)


def completion(url, model):
    """The answer's document and headers."""
    body = {"model": model, "prompt": PROMPT, "max_tokens": 8, "temperature": 0}
    status, text, headers = send(url + "/v1/completions", body, os.environ.get("DUET_CLIENT_KEY"))
    if status == 401:
        sys.exit("the proxy wants a client's key: give test.keys.existingSecret")
    if status != 200:
        sys.exit("the proxy answers %d: %s" % (status, text))
    return json.loads(text), headers


def prove(url):
    """Send a canary through every pair; all have to come through."""
    status, text, _ = send(
        url + "/pairs/prove", {}, os.environ.get("DUET_OPERATOR_KEY") or os.environ.get("DUET_CLIENT_KEY")
    )
    if status in (401, 403):
        print("not proven: that takes an operator's key, test.keys.existingSecret")
        return
    if status != 200:
        sys.exit("%s/pairs/prove answers %d: %s" % (url, status, text))
    pairs = json.loads(text)["pairs"]
    wrong = 0
    for pair in pairs:
        proof = pair["proof"] or {"verdict": "undecided", "reason": pair["reason"], "tokens": 0}
        print(
            "%s -> %s: %s, %d KV tokens %s"
            % (pair["prefill"], pair["decode"], proof["verdict"], proof["tokens"], proof["reason"])
        )
        # Of a pair that is away, or too busy, nothing is known; engines may be unable to say.
        wrong += proof["verdict"] not in ("proven", "undecided", "impossible")
    if wrong or not pairs:
        sys.exit("%d of %d pairs do not hand over KV" % (wrong, len(pairs)))


def send(url, body, key):
    """Status, text and headers of the answer to a POST."""
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
        sys.exit("%s: %s" % (url, error))


if __name__ == "__main__":
    main()
