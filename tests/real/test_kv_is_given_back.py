"""Whatever becomes of a request, both engines live on and the blocks of its KV cache come back."""

import asyncio
import random
import time

import httpx
import pytest

from tests.launcher.local.deployments import wait_until
from tests.real.conftest import MODEL, Pair

LONG = "one two three " * 100
MESSAGES = [{"role": "user", "content": LONG}]
TOO_MANY = {"max_tokens": 2000}
A_FEW = 0.06
"""Share of the KV cache: two prompts. On a busy machine prefill may end in the moment in which it is cut off."""
REFUSED = {
    "completions": ("/v1/completions", {"prompt": LONG} | TOO_MANY),
    "chat": ("/v1/chat/completions", {"messages": MESSAGES} | TOO_MANY),
    "messages": ("/v1/messages", {"messages": MESSAGES} | TOO_MANY),
    "more tokens at least than at most": ("/v1/completions", {"prompt": LONG, "max_tokens": 5, "min_tokens": 9}),
    "log-probabilities": ("/v1/completions", {"prompt": LONG, "logprobs": 50}),
    "log-probabilities of a chat": (
        "/v1/chat/completions",
        {"messages": MESSAGES, "logprobs": True, "top_logprobs": 50},
    ),
    "log-probabilities of a response": (
        "/v1/responses",
        {"input": LONG, "top_logprobs": 50, "include": ["message.output_text.logprobs"]},
    ),
    "a number as text": ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": "x"}),
    "options of a stream": ("/v1/completions", {"prompt": LONG, "stream_options": "x"}),
    "a grammar": ("/v1/completions", {"prompt": LONG, "structured_outputs": {"regex": "("}}),
    "a schema": ("/v1/chat/completions", {"messages": MESSAGES, "structured_outputs": {"json": {"type": "no"}}}),
}


def usage(url: str) -> float:
    """The share of the KV cache in use. The engine writes the gauge when it computes, so it is made to."""
    httpx.post(f"{url}/v1/completions", json={"model": MODEL, "prompt": "x", "max_tokens": 1}, trust_env=False)
    return gauge(url, "kv_cache_usage_perc")


def gauge(url: str, name: str) -> float:
    lines = httpx.get(f"{url}/metrics", trust_env=False).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"vllm:{name}{{"))


def of_proxy(pair: Pair, name: str) -> float:
    lines = httpx.get(f"{pair.proxy}/metrics", trust_env=False).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def wait_for_idle(pair: Pair, patience: float = 60) -> None:
    """Both engines have nothing to do and hold no block."""
    for url in (pair.prefill, pair.decode):
        wait_until(lambda url=url: usage(url) == 0, lambda url=url: f"{url}: {usage(url)}", patience)
        assert gauge(url, "num_requests_running") == gauge(url, "num_requests_waiting") == 0


def assert_pd_works(pair: Pair) -> None:
    body = {"model": MODEL, "prompt": f"{time.time()} {LONG}", "max_tokens": 2}
    answer = httpx.post(f"{pair.proxy}/v1/completions", json=body, trust_env=False, timeout=60)
    assert (answer.status_code, answer.headers["x-duet-path"]) == (200, "pd")


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_after_or_before_prefill_has_computed_keeps_no_blocks(case: str, pair: Pair):
    route, body = REFUSED[case]
    with httpx.Client(trust_env=False, timeout=60) as client:
        for number in range(20):
            asked = body | {"model": MODEL, "stream": number % 2 == 0, "cache_salt": f"refused {case} {number}"}
            answer = client.post(pair.proxy + route, json=asked)
            assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
            assert "x-duet-path" not in answer.headers
        assert answer.json() == client.post(pair.decode + route, json=asked).json()
    wait_for_idle(pair, patience=8)  # far less than the lease
    assert_pd_works(pair)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/v1/chat/completions", {"messages": MESSAGES, "n": 3}),
        ("/v1/completions", {"prompt": LONG, "n": 2}),
        ("/v1/completions", {"prompt": [LONG, "other"]}),
    ],
)
def test_several_choices_are_all_there(route: str, body: dict, stream: bool, pair: Pair):
    asked = body | {"model": MODEL, "max_tokens": 16, "temperature": 0.8, "ignore_eos": True}
    count = body.get("n", 2)
    with httpx.Client(trust_env=False, timeout=60) as client:
        answer = client.post(pair.proxy + route, json=asked | {"stream": stream})
    assert answer.status_code == 200
    if stream:
        assert all(f'"choices":[{{"index":{index},' in answer.text for index in range(count))
        assert answer.text.count('"finish_reason":"length"') == count
    else:
        assert [choice["index"] for choice in answer.json()["choices"]] == [*range(count)]
    wait_for_idle(pair, patience=8)


async def leave_after(client: httpx.AsyncClient, url: str, body: dict, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await client.post(url, json=body)
    except TimeoutError:
        pass


def of_a_client(number: int, prompt: str = LONG) -> dict:
    body = {"model": MODEL, "prompt": f"{number} {prompt}", "ignore_eos": True, "cache_salt": f"leaves {number}"}
    return body | {"max_tokens": 40, "stream": number % 2 == 0}


async def test_clients_leave_at_any_moment(pair: Pair):
    lots, failed = random.Random(7), gauge(pair.decode, "nixl_num_failed_transfers_total")
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        url = f"{pair.proxy}/v1/completions"
        before = time.monotonic()
        await client.post(url, json=of_a_client(0))
        whole = time.monotonic() - before
        for number in range(1, 20):
            await leave_after(client, url, of_a_client(number), lots.uniform(0, whole))
        many = [leave_after(client, url, of_a_client(20 + number), lots.uniform(0, 5 * whole)) for number in range(20)]
        await asyncio.gather(*many)
    for url in (pair.prefill, pair.decode):
        wait_until(lambda url=url: gauge(url, "num_requests_running") + gauge(url, "num_requests_waiting") == 0)
    wait_until(lambda: usage(pair.decode) == 0)
    wait_until(lambda: usage(pair.prefill) < A_FEW, lambda: str(usage(pair.prefill)), 8)
    assert gauge(pair.decode, "nixl_num_failed_transfers_total") == failed
    assert_pd_works(pair)


async def test_clients_leave_just_when_prefill_answers(pair: Pair):
    """Far sooner than at the end of the lease, what it kept for them is free."""
    wait_for_idle(pair)
    lots, released = random.Random(11), of_proxy(pair, "duet_kv_released_total")
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        times = []
        for number in range(5):
            before = time.monotonic()
            await client.post(f"{pair.prefill}/v1/completions", json=of_a_client(300 + number) | {"max_tokens": 1})
            times.append(time.monotonic() - before)
        usual = sorted(times)[2]
        for number in range(40):
            seconds = max(0.001, usual + lots.uniform(-0.02, 0.03))
            await leave_after(client, f"{pair.proxy}/v1/completions", of_a_client(400 + number), seconds)
    wait_until(lambda: usage(pair.prefill) < A_FEW, lambda: str(usage(pair.prefill)), 3)
    assert of_proxy(pair, "duet_kv_released_total") > released
    assert of_proxy(pair, "duet_kv_stranded_total") == 0
    wait_for_idle(pair)
    assert_pd_works(pair)


async def in_flight(client: httpx.AsyncClient, pair: Pair) -> int:
    return (await client.get(f"{pair.proxy}/ready")).json()["instances"][1]["in_flight"]


async def test_clients_leave_while_decode_lets_their_requests_wait(pair: Pair):
    before = usage(pair.prefill)
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        await client.post(f"{pair.decode}/pause?mode=keep")
        try:
            asking = [
                asyncio.create_task(client.post(f"{pair.proxy}/v1/completions", json=of_a_client(100 + number)))
                for number in range(20)
            ]
            async with asyncio.timeout(20):
                while await in_flight(client, pair) < 20:
                    pass
            for each in asking:
                each.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            async with asyncio.timeout(20):
                while await in_flight(client, pair):
                    pass
        finally:
            await client.post(f"{pair.decode}/resume")
    wait_until(lambda: usage(pair.decode) == 0)
    wait_until(lambda: usage(pair.prefill) <= before, lambda: str(usage(pair.prefill)), 8)
    # On a slow machine the pause was long enough to count as frozen.
    wait_until(lambda: httpx.get(f"{pair.proxy}/ready", trust_env=False).json()["modes"]["pd"])
    assert_pd_works(pair)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/v1/chat/completions", {"messages": MESSAGES, "prompt_logprobs": 2, "max_tokens": 4}),
        ("/v1/completions", {"prompt": LONG, "prompt_logprobs": 1, "max_tokens": 4}),
        ("/v1/completions", {"prompt": "red green blue", "echo": True, "logprobs": 1, "max_tokens": 3}),
        ("/v1/completions", {"prompt": LONG, "echo": True, "max_tokens": 0, "logprobs": 1}),
    ],
)
def test_no_wish_for_the_prompts_log_probabilities_ends_an_engine(route: str, body: dict, stream: bool, pair: Pair):
    asked = body | {"model": MODEL, "temperature": 0, "stream": stream}
    with httpx.Client(trust_env=False, timeout=60) as client:
        mine, theirs = (client.post(url + route, json=asked) for url in (pair.proxy, pair.decode))
    assert mine.status_code == theirs.status_code
    assert_pd_works(pair)
