"""Routes that the proxy passes on are answered as by the engine itself."""

import httpx
import pytest

from tests.real.conftest import MODEL, Pair

HELLO = [{"role": "user", "content": "one two three"}]
ROUTES = [
    ("GET", "/version", None),
    ("GET", "/v1/nothing", None),
    ("GET", "/v1/completions", None),
    ("POST", "/tokenize", {"model": MODEL, "prompt": "one two three"}),
    ("POST", "/detokenize", {"model": MODEL, "tokens": [5, 6, 7]}),
    ("POST", "/tokenize", {"model": "another", "prompt": "x"}),
    ("POST", "/v1/embeddings", {"model": MODEL, "input": "x"}),
    ("POST", "/v1/messages/count_tokens", {"model": MODEL, "messages": HELLO}),
    ("GET", "/v1/responses/resp_unknown", None),
    ("POST", "/v1/responses/resp_unknown/cancel", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_the_answer_is_the_engines(method: str, path: str, body: dict | None, pair: Pair):
    mine, theirs = (
        httpx.request(method, url + path, json=body, trust_env=False, timeout=60) for url in (pair.proxy, pair.decode)
    )
    assert (mine.status_code, mine.json()) == (theirs.status_code, theirs.json())
    assert mine.headers["content-type"] == theirs.headers["content-type"]


def test_routes_that_operate_the_engine_are_refused(pair: Pair):
    answer = httpx.post(f"{pair.proxy}/v1/load_lora_adapter", json={}, trust_env=False)
    assert answer.status_code == 403
