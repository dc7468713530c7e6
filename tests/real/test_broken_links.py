"""Real engines between which KV does not move, or not the right KV: what the canary sees, and what clients get."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from proxy.config import ProxyConfig
from proxy.settings import Breaker, Canary, FailurePolicy, Settings
from proxy.topology import ConnectorKind, Instance, Role, Topology
from tests.proxy.program import Program, running
from tests.real.conftest import MODEL, Pair
from tests.real.engines import Engine, engine
from tests.real.relay import Change, Relay

PROMPT = {"model": MODEL, "prompt": "pack my box with five dozen jugs " * 20, "max_tokens": 6, "temperature": 0}


@contextlib.asynccontextmanager
async def proxy(
    folder: Path, prefill: str, decode: str, *, canary: bool = True, policy: FailurePolicy = FailurePolicy.AGGREGATE
) -> AsyncIterator[Program]:
    """A proxy of its own before two engines."""
    instances = (Instance("prefill-0", Role.PREFILL, prefill), Instance("decode-0", Role.DECODE, decode))
    settings = Settings(
        canary=Canary(interval=3600),
        breaker=Breaker(pause=0.2, longest_pause=0.5),
        failure_policy=policy,
        probe_interval=0.5,
    )
    config = ProxyConfig(Topology(instances, ConnectorKind.NIXL_PULL), settings)
    async with running(config, folder, canaries=canary) as program:
        yield program


async def the_pair(program: Program) -> dict:
    """Its row of the matrix."""
    return (await program.client.get("/pairs")).json()["pairs"][0]


async def until(program: Program, standing: str, within: float = 15) -> dict:
    """Wait for a standing, so many seconds."""
    async with asyncio.timeout(within):
        while (pair := await the_pair(program))["standing"] != standing:
            pass
    return pair


async def alone(url: str, body: dict) -> str:
    """The text of decode by itself, with nothing cached."""
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        answer = await client.post(f"{url}/v1/completions", json=body | {"cache_salt": "alone"})
        return answer.json()["choices"][0]["text"]


LEASE = 5


@pytest.fixture(scope="module")
def stranger(pair_profile: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A prefill engine with a short lease, that no decode engine has met: known ones need no side channel any more."""
    folder = tmp_path_factory.mktemp("a stranger")
    with engine(pair_profile, "prefill-0", 18300, [f"kv_transfer.lease={LEASE}"], folder) as running:
        yield running


async def test_a_blocked_side_channel_is_noticed_before_any_request(pair: Pair, stranger: Engine, tmp_path: Path):
    await it_is_out_and_comes_back(stranger.url, pair.decode, lambda kv: kv | {"remote_port": 9}, tmp_path)


async def test_a_wrong_engine_id_is_noticed_before_any_request(pair: Pair, tmp_path: Path):
    await it_is_out_and_comes_back(pair.prefill, pair.decode, lambda kv: kv | {"remote_engine_id": "other"}, tmp_path)


async def it_is_out_and_comes_back(prefill: str, decode: str, change: Change, folder: Path) -> None:
    async with Relay(prefill).running() as relay:
        relay.change = change
        async with proxy(folder, relay.url, decode) as program:
            row = await the_pair(program)
            assert (row["standing"], row["proof"]["verdict"], row["gets_requests"]) == ("out", "failed", False)
            assert "decode-0: the engine answered 500; by its counter 1 hand-shakes or transfers of KV" in row["reason"]
            answer = await program.client.post("/v1/completions", json=PROMPT)
            assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "no_pair")
            relay.change = dict
            await until(program, "proven")
            answer = await program.client.post("/v1/completions", json=PROMPT)
            assert answer.headers["x-duet-path"] == "pd"


async def test_a_link_that_breaks_later_costs_one_request_which_is_answered_all_the_same(pair: Pair, tmp_path: Path):
    async with Relay(pair.prefill).running() as relay, proxy(tmp_path, relay.url, pair.decode) as program:
        assert (await the_pair(program))["standing"] == "proven"
        relay.change = lambda kv: kv | {"remote_engine_id": "another-engine", "remote_port": 9}
        text = await alone(pair.decode, PROMPT)
        first = await program.client.post("/v1/completions", json=PROMPT)
        assert (first.status_code, first.headers["x-duet-bypass"]) == (200, "decode_failed")
        assert first.json()["choices"][0]["text"] == text
        for _ in range(3):
            assert (await program.client.post("/v1/completions", json=PROMPT)).headers["x-duet-bypass"] == "no_pair"
        row = await until(program, "out")
        assert row["failed"] == 1


async def test_kv_of_another_prompt_is_found_out_though_no_counter_of_an_engine_says_so(pair: Pair, tmp_path: Path):
    """A reference to blocks that prefill has given to somebody else: the engines answer 200 and count nothing."""
    async with Relay(pair.prefill).running() as relay:
        first: list[dict] = []

        def replay(kv: dict) -> dict:
            first.append(kv)
            return kv | {"remote_block_ids": first[0]["remote_block_ids"]}

        relay.change = replay
        async with proxy(tmp_path, relay.url, pair.decode) as program:
            assert (await the_pair(program))["standing"] == "proven"
            answer = (await program.client.post("/pairs/prove")).json()["pairs"][0]
            assert (answer["proof"]["verdict"], answer["standing"]) == ("wrong_text", "out")
            assert "with prefill's KV and" in answer["reason"]
            answer = await program.client.post("/v1/completions", json=PROMPT)
            assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "no_pair")


async def test_kv_whose_lease_has_ended_or_whose_prefill_is_dead_gives_the_right_text_or_an_error(
    pair: Pair, stranger: Engine, tmp_path: Path
):
    """The last that uses this prefill engine."""
    async with contextlib.AsyncExitStack() as stack:
        relay = await stack.enter_async_context(Relay(stranger.url).running())
        fails = FailurePolicy.FAIL
        program = await stack.enter_async_context(proxy(tmp_path, relay.url, pair.decode, canary=False, policy=fails))
        text = await alone(pair.decode, PROMPT)
        relay.hold = LEASE + 2
        answer = await program.client.post("/v1/completions", json=PROMPT | {"cache_salt": "late"})
        assert answer.status_code in (200, 500)
        if answer.status_code == 200:
            assert answer.json()["choices"][0]["text"] == text
        counters = (await program.client.get(f"{stranger.url}/metrics")).text
        expired = next(line for line in counters.splitlines() if line.startswith("vllm:nixl_num_kv_expired"))
        assert float(expired.rpartition(" ")[2]) >= 1

        # Prefill dies between its answer and decode's reading: decode says so, and serves whatever comes next.
        relay.hold = 1
        relay.answered.clear()
        body = PROMPT | {"cache_salt": "dead"}
        asked = asyncio.create_task(program.client.post("/v1/completions", json=body))
        await relay.answered.wait()
        for process in (*stranger.process.children(recursive=True), stranger.process):
            process.kill()
        answer = await asked
        assert answer.status_code == 500 or answer.json()["choices"][0]["text"] == text
        assert await alone(pair.decode, PROMPT) == text


@pytest.mark.parametrize(
    ("change", "standing", "reason"),
    [
        ("model.dtype=bfloat16", "out", "hand-shakes or transfers of KV failed"),
        ("roles.decode.block_size=32", "refused", "block size"),
        ("quantization.kv_cache_dtype=fp8", "refused", "KV cache"),
        ("model.path={copy}", "refused", "model"),
    ],
)
async def test_a_decode_that_does_not_fit_gets_no_hand_over_and_the_matrix_says_why(
    pair: Pair, pair_profile: Path, model_folder: Path, tmp_path: Path, change: str, standing: str, reason: str
):
    copy = shutil.copytree(model_folder, tmp_path / "the same model elsewhere")
    with engine(pair_profile, "decode-0", 18310, [change.format(copy=copy)], tmp_path) as decode:
        async with proxy(tmp_path, pair.prefill, decode.url) as program:
            row = await the_pair(program)
            assert (row["standing"], row["gets_requests"]) == (standing, False)
            assert reason in row["reason"]
            answer = await program.client.post("/v1/completions", json=PROMPT)
            assert answer.headers.get("x-duet-path") != "pd"
