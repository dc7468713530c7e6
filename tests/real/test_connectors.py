"""Other KV connectors between real engines: decode's own counter says that KV has moved, and the text is the same."""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from proxy.handoff import HANDOFFS
from proxy.topology import ConnectorKind
from tests.launcher.local.deployments import launched, wait_until
from tests.real.conftest import MODEL, Pair

_START_BUDGET = 300
BLOCK = 128
"""Tokens in a block of an engine on a CPU."""
TOKENS = range(10, 600)
ROUTES = {
    "/v1/completions": "prompt",
    "/v1/chat/completions": "messages",
    "/v1/responses": "input",
    "/v1/messages": "messages",
}


@pytest.fixture(
    scope="module", params=[ConnectorKind.NIXL_PUSH, ConnectorKind.SHARED_STORAGE, ConnectorKind.MULTI], ids=str
)
def kind(request: pytest.FixtureRequest) -> ConnectorKind:
    """One connector after the other: only one pair of them runs at a time."""
    return ConnectorKind(request.param)


@pytest.fixture(scope="module")
def pair_of(kind: ConnectorKind, model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A running pair."""
    role = {"kv_cache_memory": "64MiB", "enforce_eager": True}
    content = {
        "description": f"A real pair over {kind}",
        "device": "cpu",
        "model": {"path": str(model_folder), "served_name": MODEL, "dtype": "float32", "max_model_len": 1024},
        "roles": {"prefill": role, "decode": role},
        "kv_transfer": {"connector": str(kind)},
        "proxy": {"port": 18300, "failure_policy": "fail", "canary": {"interval": 3600}},
        "ports": {"engine": 18400, "side_channel": 15700},
        "startup_timeout": _START_BUDGET,
    }
    folder = tmp_path_factory.mktemp("a connector")
    profile = folder / f"{kind}.yaml"
    profile.write_text(yaml.safe_dump(content))
    with launched(["up", str(profile)], folder / "run", {}, folder / "output") as running:
        running.wait_ready(_START_BUDGET)
        urls = {instance["name"]: instance["url"] for instance in running.state()["instances"]}
        yield Pair(running, urls["proxy"], urls["prefill-0"], urls["decode-0"])


def prompt(tokens: int, seed: object) -> list[int]:
    """Token ids that no test has used before."""
    return random.Random(f"{tokens} {seed}").choices(TOKENS, k=tokens)


def ask(url: str, tokens: list[int], **more: object) -> httpx.Response:
    body = {"model": MODEL, "prompt": tokens, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
    return httpx.post(f"{url}/v1/completions", json=body | more, trust_env=False, timeout=60)


def alone(pair: Pair, kind: ConnectorKind, tokens: list[int]) -> str:
    """What decode makes of a prompt that it computes itself."""
    before = pair.tokens("local_compute")
    alone = {"cache_salt": f"alone {random.random()}", **HANDOFFS[kind].movement.reference}
    text = ask(pair.decode, tokens, **alone).json()["choices"][0]["text"]
    wait_until(lambda: pair.tokens("local_compute") - before == len(tokens))  # it counts a moment later
    return text


def proof(pair: Pair) -> dict:
    """What the last canary has shown."""
    (told,) = httpx.get(f"{pair.proxy}/pairs", trust_env=False).json()["pairs"]
    return {"standing": told["standing"], **(told["proof"] or {})}


def test_its_canary_proves_the_pair(pair_of: Pair, kind: ConnectorKind):
    shown = proof(pair_of)
    assert (shown["standing"], shown["verdict"]) == ("proven", "proven"), shown
    assert shown["tokens"] == (256 if kind is ConnectorKind.SHARED_STORAGE else 304)


@pytest.mark.parametrize("tokens", [1, 2, 127, 128, 129, 130, 256, 257, 258, 300, 1000])
def test_the_kv_of_a_new_prompt_moves_and_the_text_is_decode_s_own(tokens: int, pair_of: Pair, kind: ConnectorKind):
    asked, before = prompt(tokens, "new"), pair_of.tokens("external_kv_transfer")
    answer = ask(pair_of.proxy, asked)
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")
    least = HANDOFFS[kind].movement.moved(tokens, BLOCK)
    moved = (
        least if kind is ConnectorKind.SHARED_STORAGE or tokens == 1 else tokens
    )  # one is computed again in any case
    wait_until(lambda: pair_of.tokens("external_kv_transfer") - before >= moved, patience=5)
    assert answer.json()["choices"][0]["text"] == alone(pair_of, kind, asked)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_kv_moves_on_every_route(route: str, stream: bool, pair_of: Pair):
    text = f"{route} {stream} " + "one two three " * 100
    given = [{"role": "user", "content": text}] if ROUTES[route] == "messages" else text
    cap = "max_output_tokens" if route == "/v1/responses" else "max_tokens"
    before = pair_of.tokens("external_kv_transfer")
    body = {"model": MODEL, ROUTES[route]: given, cap: 4, "stream": stream}
    answer = httpx.post(f"{pair_of.proxy}{route}", json=body, trust_env=False, timeout=60)
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")
    wait_until(lambda: pair_of.tokens("external_kv_transfer") - before > BLOCK)


def test_prompts_that_begin_alike_are_told_apart(pair_of: Pair, kind: ConnectorKind):
    begun = prompt(BLOCK, "begun")
    for tokens in (150, 257, 257, 300, 150):
        asked = begun + prompt(tokens - BLOCK, "rest")
        answer = ask(pair_of.proxy, asked)
        assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")
        assert answer.json()["choices"][0]["text"] == alone(pair_of, kind, asked)


def test_after_prefill_was_started_again_kv_moves_again(pair_of: Pair):
    before = pair_of.launcher.instance("prefill-0")["pid"]
    os.kill(before, signal.SIGKILL)
    pair_of.launcher.wait(lambda: pair_of.launcher.instance("prefill-0")["pid"] not in {None, before})
    pair_of.launcher.wait(lambda: pair_of.launcher.instance("prefill-0")["state"] == "ready", patience=180)
    wait_until(lambda: httpx.get(f"{pair_of.proxy}/ready", trust_env=False).json()["modes"]["pd"])
    assert proof(pair_of)["standing"] == "proven"
    for seed in ("first", "second"):
        moved = pair_of.tokens("external_kv_transfer")
        answer = ask(pair_of.proxy, prompt(300, f"{seed} after"))
        assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")
        wait_until(lambda moved=moved: pair_of.tokens("external_kv_transfer") - moved >= 2 * BLOCK)
