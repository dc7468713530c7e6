"""Each rule that is more than a combination of settings: where it fires, and a case like it where it does not."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from launcher import preflight
from launcher.inventory import Inventory, Limits, Listener
from launcher.preflight import tracing
from launcher.preflight.finding import Case, Rule
from launcher.preflight.matrix import COMBINATIONS
from tests.launcher.builders import GIB, MACHINE, case, model_folder
from tests.launcher.preflight.checkpoint_cases import CHECKPOINT_CASES

Build = Callable[[Path], Case]


def of(profile: str, *overrides: str, machine=MACHINE, environ: Mapping[str, str] | None = None) -> Build:
    return lambda _: case(profile, *overrides, machine=machine, environ=environ)


def with_folder(*overrides: str, config: Mapping[str, object] | None = None, machine=MACHINE) -> Build:
    """The demo with a model folder of its own."""

    def build(folder: Path) -> Case:
        made = model_folder(folder / "model", dict(config or {}))
        return case("demo", "model.bundled=null", f'model.path="{made}"', *overrides, machine=machine)

    return build


def without_folder(folder: Path) -> Case:
    return case("demo", "model.bundled=null", f'model.path="{folder / "gone"}"')


def elsewhere(address: str) -> Build:
    """Prefill and decode on two hosts, which no profile of one machine gives."""

    def build(_: Path) -> Case:
        judged = case("demo")
        prefill, decode = judged.plan.engines
        env = {**prefill.env, "VLLM_NIXL_SIDE_CHANNEL_HOST": address}
        apart = (replace(prefill, host="10.0.0.11", env=env), replace(decode, host="10.0.0.12"))
        return replace(judged, plan=replace(judged.plan, engines=apart))

    return build


def limited(**limits: int) -> Build:
    return of("api-throughput", machine=replace(MACHINE, limits=Limits(**limits)))


def with_cards(size: int) -> Inventory:
    gpus = tuple(replace(gpu, memory_total=size * GIB, memory_free=size * GIB) for gpu in MACHINE.gpus)
    return replace(MACHINE, gpus=gpus)


SMALL = "model.id=RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8"
SHORT = ("model.max_model_len=4096", "roles.aggregated.enforce_eager=true")
BUSY_GPUS = replace(MACHINE, gpus=tuple(replace(gpu, memory_free=60 * GIB) for gpu in MACHINE.gpus))
NO_GPUS = replace(MACHINE, gpus=())
EVENTS = "{enable_kv_cache_events: true, publisher: zmq, endpoint: 'tcp://*:%d'}"
ON_DECODE, ON_PREFILL = (f"roles.{role}.engine_args.kv-events-config={EVENTS}" for role in ("decode", "prefill"))
SHARED = "roles.prefill={tensor_parallel: 1, devices: [0], gpu_memory_utilization: 0.5}"
DECODE = "roles.decode={tensor_parallel: 1, devices: [0], gpu_memory_utilization: %s}"
SIZED = "roles.%s={tensor_parallel: 1, devices: [0], kv_cache_memory: 10GiB%s}"

CASES: Mapping[str, tuple[Build, Build]] = {
    **CHECKPOINT_CASES,
    "agreement/prefill-decode": (
        of("demo", "roles.prefill.block_size=64", "roles.decode.block_size=32"),
        of("demo", "roles.prefill.block_size=64", "roles.decode.block_size=64"),
    ),
    "agreement/loopback-side-channel": (elsewhere("localhost"), elsewhere("10.0.0.11")),
    "model/files-there": (without_folder, with_folder()),
    "quantization/as-declared": (
        with_folder("quantization.checkpoint_scheme=int8"),
        with_folder("quantization.checkpoint_scheme=int4", config={"quantization_config": {"bits": 4}}),
    ),
    "proxy/setting-without-effect": (
        of("single-gpu", "proxy.pd.idle_decode=true"),
        of("demo", "proxy.pd.idle_decode=true"),
    ),
    "proxy/pd-never-used": (of("demo", "proxy.pd.shorter_than=2048"), of("demo", "proxy.pd.shorter_than=2000")),
    "memory/machine": (
        with_folder(machine=replace(MACHINE, memory_available=GIB)),
        with_folder(),
    ),
    "memory/one-request": (
        with_folder("roles.decode.kv_cache_memory=3MiB"),
        with_folder("roles.decode.kv_cache_memory=4352KiB"),
    ),
    "memory/device": (
        of("api-throughput", SMALL, SHARED, DECODE % 0.5, machine=BUSY_GPUS),
        of("api-throughput", SMALL, SHARED, DECODE % 0.5),
    ),
    "memory/weights": (of("interactive", machine=with_cards(8)), of("interactive", machine=with_cards(24))),
    "memory/draft": (of("single-gpu", *SHORT, machine=with_cards(13)), of("single-gpu", *SHORT)),
    "memory/tight": (of("interactive", machine=with_cards(15)), of("interactive", machine=with_cards(24))),
    "devices/there": (of("api-throughput", machine=NO_GPUS), of("api-throughput")),
    "devices/shares": (of("api-throughput", SHARED, DECODE % 0.6), of("api-throughput", SHARED, DECODE % 0.5)),
    "devices/free-at-start": (
        of("api-throughput", SIZED % ("prefill", ""), SIZED % ("decode", "")),
        of("api-throughput", SIZED % ("prefill", ""), SIZED % ("decode", ", gpu_memory_utilization: 0.5")),
    ),
    "devices/twice": (
        of("api-throughput", "roles.decode.devices=[2, 2]"),
        of("api-throughput", "roles.decode.devices=[2, 3]"),
    ),
    "devices/mig": (
        of("api-throughput", "roles.decode.devices=[MIG-a, MIG-b]"),
        of("api-throughput", "roles.decode.devices=[2, 3]"),
    ),
    "environment/unknown-variable": (
        of("demo", "env.VLLM_LOGING_LEVEL=DEBUG"),
        of("demo", "env.VLLM_LOGGING_LEVEL=DEBUG"),
    ),
    "environment/vllm-port": (
        of("demo", 'roles.decode.env.VLLM_PORT="tcp://10.0.0.1:80"'),
        of("demo", 'roles.decode.env.VLLM_PORT="29500"'),
    ),
    "environment/secret-as-text": (
        of("demo", "env.HF_TOKEN=hf_abcdefghijklmnopqrstuv"),
        of("demo", "secrets.HF_TOKEN={env: HF_TOKEN}"),
    ),
    "environment/secret-there": (
        of("demo", "secrets.HF_TOKEN={env: MINE}"),
        of("demo", "secrets.HF_TOKEN={env: MINE}", environ={"MINE": "hf_x"}),
    ),
    "environment/given-twice": (
        of("demo", "env.A=1x", "secrets.A={env: B}"),
        of("demo", "env.A=1x", "secrets.B={env: B}"),
    ),
    "environment/expandable-segments": (
        of("api-throughput", "env.PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True'"),
        of("interactive", "env.PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True'"),
    ),
    "environment/offline": (
        of("interactive", "env.HF_HUB_OFFLINE='1'", environ={"HF_HUB_CACHE": "/nowhere"}),
        of("interactive", environ={"HF_HUB_CACHE": "/nowhere"}),
    ),
    "environment/keep-alive": (
        of("demo", "env.VLLM_HTTP_TIMEOUT_KEEP_ALIVE='1'"),
        of("demo", "env.VLLM_HTTP_TIMEOUT_KEEP_ALIVE='5'"),
    ),
    "environment/kv-cache-space": (
        of("demo", "env.VLLM_CPU_KVCACHE_SPACE='1'"),
        of("api-throughput", "env.VLLM_CPU_KVCACHE_SPACE='1'"),
    ),
    "pools/models-of-rules": (
        of("demo", "proxy.pools.rules=[{pool: main, when: {models: [gpt]}}]"),
        of("demo", "proxy.pools.rules=[{pool: main, when: {models: [smollm2]}}]"),
    ),
    "pools/without-rule": (
        of("demo", "pools.other={}"),
        of("demo", "pools.other={}", "proxy.pools.rules=[{pool: other, when: {tags: [batch]}}]"),
    ),
    "pools/too-long": (
        of("demo", "proxy.pools.rules=[{pool: main, when: {prompt_tokens: {min: 2048}}}]"),
        of("demo", "proxy.pools.rules=[{pool: main, when: {prompt_tokens: {min: 2047}}}]"),
    ),
    "ports/kv-events": (
        of("demo", ON_PREFILL % 5557, ON_DECODE % 5557),
        of("demo", ON_PREFILL % 5557, ON_DECODE % 5558),
    ),
    "ports/admin": (of("demo", "proxy.admin={port: 8000}"), of("demo", "proxy.admin={port: 8001}")),
    "ports/proxy": (
        of("demo", "proxy.port=18999", machine=replace(MACHINE, listeners={18999: Listener(1, "x")})),
        of("demo", "proxy.port=18999"),
    ),
    "host/engine-version": (of("demo", machine=replace(MACHINE, engine_version="0.33.1")), of("demo")),
    "host/engine-installed": (of("demo", "engine_command=[no-such-engine]"), of("demo", "engine_command=[sh]")),
    "host/tracing-installed": (of("demo", "proxy.tracing={endpoint: 'http://127.0.0.1:4318'}"), of("demo")),
    "host/proxy-files": (
        of("demo", "proxy.reference.file=/no/such/file", "proxy.tls={certificate: /no, key: /no}"),
        of("demo", f"proxy.reference.file={__file__}"),
    ),
    "host/open-files": (limited(open_files=4096), limited(open_files=2**20)),
    "host/shared-memory": (limited(shared_memory=64 * 2**20), limited(shared_memory=8 * GIB)),
    "host/disk": (limited(disk=2**20), limited(disk=100 * GIB)),
    "host/gpu-memory": (of("interactive", machine=BUSY_GPUS), of("interactive")),
    "host/driver": (limited(driver_cuda=12080, engine_cuda=13), limited(driver_cuda=13000, engine_cuda=12)),
}
PLAIN: tuple[Rule, ...] = tuple(
    rule for rule in preflight.RULES if rule.name not in {combination.name for combination in COMBINATIONS}
)


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch):
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)


@pytest.mark.parametrize("rule", PLAIN, ids=lambda rule: rule.name)
def test_a_rule_fires_where_it_should_and_only_there(tmp_path, rule):
    found, not_found = CASES[rule.name]
    faults = [*rule.judge(found(tmp_path / "found"))]
    assert faults
    assert not [*rule.judge(not_found(tmp_path / "fine"))]
    for fault in faults:
        assert fault.key
        assert fault.what
        assert fault.fix
    assert rule.source


def test_every_rule_has_its_cases():
    assert sorted(CASES) == sorted(rule.name for rule in PLAIN)


def test_a_setting_of_all_roles_is_told_once():
    found = [*preflight.judge(case("demo", "quantization.weights=fp8_per_tensor"))]
    assert [each.rule for each in found].count("quantization/online-on-cpu") == 1


def test_a_finding_tells_the_line_of_its_key(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("extends: demo\nroles:\n  decode:\n    block_size: 48\n")
    (finding,) = [each for each in preflight.judge(case(file)) if each.rule == "cpu/block-size"]
    assert finding.place == f"{file}:4"
    assert finding.fault.values == {"block_size": "48"}
