"""Every route of the engine answers through the proxy as the engine does, by every method."""

import re

import httpx
import pytest

from tests.real.conftest import MODEL, Pair

METHODS = ("GET", "HEAD", "OPTIONS", "POST")
OWN = {"/metrics", "/health"}
"""The proxy's own."""
NOT_JSON = "is not JSON"
_DIFFERENT_EACH_TIME = re.compile(r'"created":\d+|modelperm-\w+')
TIMES = {"date", "server", "content-length", "transfer-encoding"}


def said(answer: httpx.Response) -> tuple[int, str | None, str | None, str]:
    kind, allow = answer.headers.get("content-type"), answer.headers.get("allow")
    return answer.status_code, kind, allow, _DIFFERENT_EACH_TIME.sub("", answer.text)


def own_headers(answer: httpx.Response) -> set[str]:
    return {name for name in answer.headers if name not in TIMES and not name.startswith("x-")}


def test_every_route_and_method(pair: Pair):
    differ, operating = [], set()
    with httpx.Client(trust_env=False, timeout=60) as client:
        paths = client.get(f"{pair.decode}/openapi.json").json()["paths"]
        for path in sorted(set(paths) - OWN):
            for method in METHODS:
                asked = path.replace("{response_id}", "resp_x")
                mine = client.request(method, pair.proxy + asked)
                if mine.status_code == 403:  # the engine is not asked by this test either
                    operating.add(path)
                    continue
                theirs = client.request(method, pair.decode + asked)
                if NOT_JSON in mine.text and mine.status_code == theirs.status_code == 400:
                    continue  # the proxy's own words for a body that it cannot read
                if said(mine) != said(theirs) or own_headers(mine) != own_headers(theirs):
                    differ.append((method, path, said(mine), said(theirs)))
    assert differ == []
    assert {"/v1/models", "/tokenize", "/v1/completions", "/v1/responses/{response_id}"} <= set(paths) - operating
    assert {"/sleep", "/collective_rpc", "/reset_prefix_cache", "/pause", "/update_weights"} <= operating


@pytest.mark.parametrize("path", ["/v1/models/", "/v1/completions/", "/v1/nothing/"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_slash_too_many(path: str, method: str, pair: Pair):
    mine, theirs = (httpx.request(method, url + path, trust_env=False) for url in (pair.proxy, pair.decode))
    assert (mine.status_code, mine.text) == (theirs.status_code, theirs.text)


@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/models", "/tokenize"])
def test_a_browser_asks_before_it_asks(route: str, pair: Pair):
    question = {
        "origin": "https://page.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    mine, theirs = (httpx.options(url + route, headers=question, trust_env=False) for url in (pair.proxy, pair.decode))
    assert (mine.status_code, mine.text) == (theirs.status_code, theirs.text)
    assert own_headers(mine) == own_headers(theirs)


def test_a_form_in_many_parts_is_answered(pair: Pair):
    files = {"file": ("a.wav", b"RIFF" + b"x" * 5_000_000, "audio/wav")}
    mine, theirs = (
        httpx.post(f"{url}/v1/audio/transcriptions", files=files, data={"model": MODEL}, trust_env=False, timeout=60)
        for url in (pair.proxy, pair.decode)
    )
    assert (mine.status_code, mine.text) == (theirs.status_code, theirs.text)


def test_a_compressed_body_is_refused(pair: Pair):
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    for url in (pair.proxy, pair.decode):
        assert httpx.post(f"{url}/v1/completions", content=body, headers=headers, trust_env=False).status_code == 400
