"""Names, ports, devices and files of a plan."""

from dataclasses import replace
from pathlib import Path

import pytest

from launcher import loader, planner
from launcher.errors import PlanError
from proxy import config as proxy_config
from proxy.topology import ConnectorKind, Role
from tests.launcher.builders import MACHINE, RUN_DIRECTORY, busy, options, plan

TWO_PAIRS = ("roles.prefill.replicas=2", "roles.decode.replicas=2")


def ports(settled):
    return [engine.port for engine in settled.engines]


def test_instances_are_numbered_within_their_role():
    settled = plan("demo", *TWO_PAIRS)
    assert settled.instance_names() == ("prefill-0", "prefill-1", "decode-0", "decode-1", "proxy")


def test_every_instance_has_ports_of_its_own():
    settled = plan("demo", *TWO_PAIRS)
    assert ports(settled) == [8100, 8101, 8102, 8103]
    assert [engine.side_channel_port for engine in settled.engines] == [5600, 5601, 5602, 5603]


def test_busy_ports_are_skipped():
    settled = plan("demo", machine=busy(8100, 8102, 5600))
    assert ports(settled) == [8101, 8103]
    assert [engine.side_channel_port for engine in settled.engines] == [5601, 5602]


def test_the_port_of_the_proxy_is_never_given_to_an_engine():
    assert ports(plan("demo", "proxy.port=8100")) == [8101, 8102]
    assert ports(plan("demo", "ports.engine=8000")) == [8001, 8002]


def test_overlapping_ranges_do_not_collide():
    settled = plan("demo", *TWO_PAIRS, "ports.engine=7000", "ports.side_channel=7001", "proxy.port=7002")
    used = [port for engine in settled.engines for port in (engine.port, engine.side_channel_port)]
    assert len({*used, 7002}) == 9


def test_ports_that_run_out_are_a_plan_error():
    with pytest.raises(PlanError, match=r"ports\.engine: no free port from 65535 to 65535: lower it"):
        plan("demo", "ports.engine=65535")


def test_the_busy_port_of_the_proxy_is_left_to_preflight():
    assert plan("demo", machine=busy(8000)).proxy.port == 8000


def test_each_gpu_is_given_once():
    settled = plan("api-throughput", "roles.prefill.replicas=2", "roles.prefill.tensor_parallel=1")
    assert [engine.devices for engine in settled.engines] == [("GPU-0",), ("GPU-1",), ("GPU-2", "GPU-3")]
    assert [engine.env["CUDA_VISIBLE_DEVICES"] for engine in settled.engines] == ["GPU-0", "GPU-1", "GPU-2,GPU-3"]


def test_a_cpu_engine_has_no_gpu():
    for engine in plan("demo").engines:
        assert engine.devices == ()
        assert "CUDA_VISIBLE_DEVICES" not in engine.env


@pytest.mark.parametrize(("cores", "each"), [(1, "1"), (2, "1"), (3, "1"), (16, "8")])
def test_engines_share_the_cores(cores, each):
    settled = plan("demo", machine=replace(MACHINE, cores=cores))
    assert {engine.env["OMP_NUM_THREADS"] for engine in settled.engines} == {each}


def test_an_aggregated_engine_has_no_connector():
    (engine,) = plan("interactive").engines
    assert engine.side_channel_port is None
    assert "--kv-transfer-config" not in engine.argv
    assert not [name for name in engine.env if "NIXL" in name]


def test_the_profile_has_the_last_word_on_the_environment():
    settled = plan("demo", 'roles.decode.env={OMP_NUM_THREADS: "7", UCX_TLS: tcp, HF_HUB_OFFLINE: "0", MINE: x}')
    prefill, decode = settled.engines
    changed = {name: decode.env[name] for name in ("OMP_NUM_THREADS", "UCX_TLS", "HF_HUB_OFFLINE", "MINE")}
    assert changed == {"OMP_NUM_THREADS": "7", "UCX_TLS": "tcp", "HF_HUB_OFFLINE": "0", "MINE": "x"}
    assert prefill.env["OMP_NUM_THREADS"] == "1"


def test_the_file_of_the_proxy_is_one_that_the_proxy_reads(tmp_path):
    settled = plan("demo", "proxy.port=9000", "proxy.failure_policy=fail", "proxy.timeouts.decode.idle=5")
    file, about = settled.files
    assert about.path == str(RUN_DIRECTORY / "about.json")
    assert file.path == str(RUN_DIRECTORY / "proxy.json")
    assert settled.proxy.argv[-2:] == ("--config", file.path)
    (tmp_path / "proxy.json").write_text(file.content)
    config = proxy_config.load(tmp_path / "proxy.json")
    assert (config.settings.port, config.settings.failure_policy, config.settings.timeouts.decode.idle) == (
        9000,
        "fail",
        5.0,
    )
    assert config.topology.connector is ConnectorKind.NIXL_PULL
    for role, engine in zip((Role.PREFILL, Role.DECODE), settled.engines, strict=True):
        (instance,) = config.topology.with_role(role)
        assert (instance.name, instance.url) == (engine.name, engine.url)


def test_the_proxy_knows_of_no_connector_when_all_is_aggregated(tmp_path):
    (tmp_path / "proxy.json").write_text(plan("single-gpu").files[0].content)
    assert proxy_config.load(tmp_path / "proxy.json").topology.connector is None


def test_another_engine_command_gets_the_same_options():
    usual, other = plan("demo"), plan("demo", "engine_command=[fake-engine, --quick]")
    for before, after in zip(usual.engines, other.engines, strict=True):
        assert after.argv == ("fake-engine", "--quick", *before.argv[4:])


def test_all_roles_are_given_the_same_string_as_the_model():
    for name in ("demo", "api-throughput", "batch-cost"):
        settled = plan(name)
        assert {options(engine.argv)["--model"] for engine in settled.engines} == {settled.model}


@pytest.mark.parametrize(
    ("overrides", "model", "served"),
    [
        ([], "/var/cache/duet/models/smollm2-135m-instruct", "smollm2"),
        (["model.served_name=null"], "/var/cache/duet/models/smollm2-135m-instruct", "smollm2-135m-instruct"),
        (["model.bundled=null", "model.id=org/name", "model.served_name=null"], "org/name", "org/name"),
        (["model.bundled=null", "model.path=/m/name", "model.served_name=null"], "/m/name", "name"),
    ],
)
def test_model_and_served_name_follow_the_source(overrides, model, served):
    settled = plan("demo", *overrides)
    assert (settled.model, settled.served_name) == (model, served)


def test_a_home_folder_is_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    model = loader.load("demo", ["model.bundled=null", "model.path=~/m"]).model
    assert planner.model_reference(model, MACHINE) == "/home/somebody/m"


def test_a_relative_folder_becomes_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert Path(plan("demo", "model.bundled=null", "model.path=m").model) == tmp_path / "m"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("'::'", "http://127.0.0.1:8000"),
        ("localhost", "http://localhost:8000"),
        ("'::1'", "http://[::1]:8000"),
    ],
)
def test_the_address_of_the_proxy_is_one_that_a_client_here_reaches(host, url):
    assert plan("demo", f"proxy.host={host}").proxy.url == url


def test_engines_listen_only_on_this_machine():
    for engine in plan("demo", "proxy.host=0.0.0.0").engines:
        assert options(engine.argv)["--host"] == "127.0.0.1"
        assert engine.env["VLLM_NIXL_SIDE_CHANNEL_HOST"] == "127.0.0.1"


def test_the_address_of_operators_is_never_given_to_an_engine_and_is_where_readiness_is_asked():
    settled = plan("demo", "proxy.admin.port=8100", "proxy.admin.host=0.0.0.0")
    assert ports(settled) == [8101, 8102]
    assert (settled.proxy.url, settled.proxy.operators_url) == ("http://127.0.0.1:8000", "http://127.0.0.1:8100")
