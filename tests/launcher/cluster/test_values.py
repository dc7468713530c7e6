"""What a profile becomes in a cluster: the values of the chart, and the same plan as `launcher plan` prints."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from launcher import loader
from launcher.cluster.judged import judged
from launcher.cluster.values import plan_for_cluster, to_yaml, values
from launcher.errors import PlanError
from tests.launcher.builders import plan, write
from tests.launcher.test_golden_plans import assert_is_golden

PLANS = Path(__file__).parents[3] / "helm" / "files" / "plans"
SHIPPED = sorted(loader.shipped_profiles())


def made(reference: str, *overrides: str) -> dict:
    return values(loader.load(reference, overrides), "mine")["plan"]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_chart_ships_what_render_prints(name):
    text = to_yaml(judged(loader.load(name), name, {}).values)
    assert_is_golden(text, PLANS / f"{name}.yaml")
    assert yaml.safe_load(text) == values(loader.load(name), name)


@pytest.mark.parametrize("name", SHIPPED)
def test_pods_run_exactly_what_plan_prints(name):
    settled = plan_for_cluster(loader.load(name), name)
    engines = made(name)["engines"]
    for engine in settled.engines:
        mine = engines[engine.role.value]
        assert [*mine["command"], *mine["args"]] == list(engine.argv)
        assert mine["env"] == dict(engine.env)


def test_partners_reach_an_engine_by_its_pod_s_address():
    prefill = made("demo")["engines"]["prefill"]
    assert prefill["env"]["VLLM_NIXL_SIDE_CHANNEL_HOST"] == "$(POD_IP)"
    assert prefill["args"][prefill["args"].index("--host") + 1] == "0.0.0.0"


def test_every_replica_has_the_same_ports_and_no_devices_of_its_own():
    engines = made("api-throughput", "roles.decode.replicas=3")["engines"]
    assert engines["decode"]["replicas"] == 3
    assert {engine["port"] for engine in engines.values()} == {8100}
    assert engines["decode"]["devices"] == {"resource": "nvidia.com/gpu", "count": 2}
    assert not any("CUDA_VISIBLE_DEVICES" in engine["env"] for engine in engines.values())


def test_the_proxy_finds_the_pods_of_its_release_and_listens_for_all():
    config = json.loads(made("demo")["proxy"]["config"])
    assert config["discovery"]["selector"] == "app.kubernetes.io/instance=@RELEASE@,duet/role"
    assert config["topology"] == {"instances": [], "connector": "nixl-pull"}
    assert config["settings"]["host"] == "0.0.0.0"


def test_operators_address_is_reached_from_other_pods():
    proxy = made("demo", "proxy.admin={port: 8001}")["proxy"]
    assert proxy["adminPort"] == 8001
    assert json.loads(proxy["config"])["settings"]["admin"]["host"] == "0.0.0.0"


def test_a_bundled_model_comes_from_the_hub():
    found = made("demo")
    assert found["model"] == {"name": "HuggingFaceTB/SmolLM2-135M-Instruct", "revision": None, "source": "hub"}
    assert "HF_HUB_OFFLINE" not in found["engines"]["prefill"]["env"]


def test_a_folder_of_this_machine_may_be_on_the_pods_only(tmp_path):
    mine = write(tmp_path, "extends: demo\ndescription: mine\nmodel: {bundled: null, path: /models/mine}\n")
    found = judged(loader.load(str(mine)), "mine", {})
    assert found.values["plan"]["model"] == {"name": "/models/mine", "revision": None, "source": "path"}


def test_prefill_outlives_decode_by_the_lease_of_its_kv():
    engines = made("demo", "kv_transfer.lease=40", "proxy.timeouts.whole_answer=100")["engines"]
    assert engines["decode"]["drainSeconds"] == 100
    assert engines["prefill"]["drainSeconds"] == 140
    for engine in engines.values():
        assert engine["terminationGracePeriodSeconds"] > engine["drainSeconds"]
        assert engine["progressDeadlineSeconds"] > engine["terminationGracePeriodSeconds"] + 300


def test_a_start_may_take_its_budget():
    startup = made("demo", "startup_timeout=601")["engines"]["decode"]["startup"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 601


def test_secrets_are_names_only():
    engines = made("demo", "secrets={HF_TOKEN: {env: MY_TOKEN}}", "roles.decode.secrets={OTHER: {file: x}}")["engines"]
    assert engines["prefill"]["secrets"] == ["HF_TOKEN"]
    assert engines["decode"]["secrets"] == ["HF_TOKEN", "OTHER"]


def test_files_that_a_connector_writes_have_a_folder():
    assert made("demo")["sharedFolder"] is None
    assert made("demo", "kv_transfer={connector: shared-storage}")["sharedFolder"] == "/etc/duet/kv"
    shared = "kv_transfer={connector: shared-storage, shared_storage: {path: /mnt/kv}}"
    assert made("demo", shared)["sharedFolder"] == "/mnt/kv"


def test_mooncake_s_bootstrap_server_is_told():
    engines = made("api-throughput", "kv_transfer={connector: mooncake}")["engines"]
    assert engines["prefill"]["bootstrap"] is True
    assert engines["prefill"]["sideChannel"] == {"port": 8998, "count": 1}
    assert engines["decode"]["sideChannel"] is None


def test_an_instance_may_span_machines():
    engine = made("api-throughput", "roles.decode.tensor_parallel=16", "roles.decode.nodes=2")["engines"]["decode"]
    assert engine["command"] == ["vllm", "serve"]
    assert engine["devices"]["count"] == 8
    assert engine["args"][engine["args"].index("--node-rank") + 1] == "0"
    worker = engine["workerArgs"]
    assert worker[worker.index("--node-rank") + 1] == "$(LWS_WORKER_INDEX)"
    assert worker[worker.index("--master-addr") + 1] == "$(LWS_LEADER_ADDRESS)"
    assert worker[-1] == "--headless"


def test_one_machine_refuses_an_instance_that_spans_several():
    with pytest.raises(PlanError, match=r"roles\.decode\.nodes: 2 machines make one instance in a cluster only"):
        plan("api-throughput", "roles.decode.nodes=2")


def test_cores_are_threads_and_requests():
    engines = made("demo", "roles.decode.cores=6")["engines"]
    assert (engines["decode"]["cores"], engines["decode"]["env"]["OMP_NUM_THREADS"]) == (6, "6")
    assert (engines["prefill"]["cores"], engines["prefill"]["env"]["OMP_NUM_THREADS"]) == (4, "4")


def test_scaling_is_passed_on():
    scaling = "roles.decode.scaling={min_replicas: 1, max_replicas: 4}"
    assert made("demo", scaling)["engines"]["decode"]["scaling"] == {"min": 1, "max": 4}


def test_the_plan_of_this_machine_is_another_one():
    assert asdict(plan_for_cluster(loader.load("demo"), "demo")) != asdict(plan("demo"))
