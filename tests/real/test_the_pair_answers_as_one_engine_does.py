"""Whatever is asked, the answer through the pair equals the answer of one engine.

``DUET_EXAMPLES=2000`` tries more requests than the usual ones.
"""

import json
import os
from collections import Counter
from itertools import count

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from proxy.completion import parse, prefill_body
from proxy.endpoint import ROUTES
from tests.real.conftest import Pair
from tests.real.generated_requests import REQUESTS, Request
from tests.real.readings import reading

EXAMPLES = int(os.environ.get("DUET_EXAMPLES", "120"))


@pytest.mark.timeout(300 + EXAMPLES)
def test_generated_requests_are_answered_alike(pair: Pair):
    ways = Counter[str | None]()
    numbers = count()

    # The same requests every time. Salts keep the KV caches of all answers apart.
    @settings(derandomize=True, max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(REQUESTS)
    def alike(request: Request) -> None:
        path, body = request
        salt = f"generated {EXAMPLES} {next(numbers)}"
        through = client.post(pair.proxy + path, json=body | {"cache_salt": salt})
        alone = {key: value for key, value in body.items() if key != "kv_transfer_params"}
        direct = client.post(pair.decode + path, json=alone | {"cache_salt": salt + " alone"})
        if through.status_code == 200:
            ways[through.headers.get("x-duet-bypass", "pd")] += 1
        if through.status_code == direct.status_code == 400 and reading(through) != reading(direct):
            # A request with two faults: prefill, which is asked for one token, may name the other one.
            asked = json.loads(prefill_body(parse(json.dumps(alone).encode(), ROUTES[path]), {}))
            direct = client.post(pair.decode + path, json=asked)
        assert reading(through) == reading(direct)

    with httpx.Client(trust_env=False, timeout=60) as client:
        alike()

    assert ways["pd"] > EXAMPLES / 4, ways
