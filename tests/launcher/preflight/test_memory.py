"""Rules of memory, each where it has something to say and where not."""

from dataclasses import replace

import pytest

from launcher.inventory import Gpu
from launcher.preflight import memory
from launcher.preflight.finding import Severity
from tests.launcher.builders import GIB, MACHINE, case, model_folder
from tests.launcher.sizing.models import said


def cards(number, size, free=None):
    gpus = tuple(
        Gpu(i, "NVIDIA L4", f"GPU-{i}", size * GIB, (size if free is None else free) * GIB) for i in range(number)
    )
    return replace(MACHINE, gpus=gpus)


def found(name, judged):
    (rule,) = (rule for rule in memory.RULES if rule.name == f"memory/{name}")
    return [*rule.judge(judged)]


def single(tmp_path, *overrides, machine, config="llama-3.1-8b"):
    folder = model_folder(tmp_path, said(config)["config"])
    changes = ("model.id=null", f'model.path="{folder}"', "quantization=null", "speculation=null", "model.dtype=auto")
    return case("single-gpu", *changes, *overrides, machine=machine)


def test_two_engines_that_share_a_device_may_not_take_more_than_is_free():
    shared = ("roles.decode.devices=[0, 1]", "roles.prefill.devices=[0, 1]")
    halves = ("roles.decode.gpu_memory_utilization=0.49", "roles.prefill.gpu_memory_utilization=0.5")
    (first, _) = found("device", case("api-throughput", *shared, *halves, machine=cards(4, 80, 60)))
    assert first.what.startswith("prefill-0, decode-0 take 78.0GiB of GPU 0, of whose 80.0GiB 59.1GiB are free")
    assert not found("device", case("api-throughput", *shared, *halves))


def test_a_cache_of_a_given_size_counts_with_the_rest_of_its_engine():
    given = "roles.aggregated={gpu_memory_utilization: null, kv_cache_memory: %s}"
    (fault,) = found("device", case("interactive", given % "70GiB"))
    assert fault.what.startswith("aggregated-0 take 8")
    assert not found("device", case("interactive", given % "60GiB"))


def test_weights_that_are_larger_than_the_device_s_share_are_found(tmp_path):
    (fault,) = found("weights", single(tmp_path, machine=cards(1, 16)))
    assert fault.key == "roles.aggregated"
    assert "weights 15.0GiB" in fault.what
    assert not found("weights", single(tmp_path, machine=cards(1, 24)))


def test_a_draft_that_does_not_fit_beside_its_target_is_found():
    small = ("model.max_model_len=4096", "roles.aggregated.enforce_eager=true")
    (fault,) = found("draft", case("single-gpu", *small, machine=cards(1, 13)))
    assert fault.key == "speculation.draft"
    assert fault.what.startswith("the draft's 1.1GiB do not fit beside the model: aggregated-0 needs weights 9.3GiB")
    assert not found("draft", case("single-gpu", machine=cards(1, 24)))
    assert not found("draft", case("single-gpu", machine=cards(1, 8)))  # then not even the target fits


def test_a_device_whose_rest_does_not_hold_one_request_is_found(tmp_path):
    judged = single(tmp_path, "model.max_model_len=131072", machine=cards(1, 24))
    (fault,) = found("one-request", judged)
    assert fault.what.startswith("the KV cache of about ")
    assert "but one may have 131072 (model.max_model_len)" in fault.what
    assert "quantization.kv_cache_dtype" in fault.fix
    assert not found("one-request", single(tmp_path, "model.max_model_len=8192", machine=cards(1, 24)))


def test_what_fits_without_its_margin_only_is_a_warning(tmp_path):
    judged = single(tmp_path, "model.max_model_len=4096", machine=cards(1, 20))
    (fault,) = found("tight", judged)
    assert fault.severity is Severity.WARNING
    assert "aggregated-0 fits only without the margin of 20%" in fault.what
    assert not found("tight", single(tmp_path, "model.max_model_len=4096", machine=cards(1, 48)))


def test_the_machine_s_memory_is_for_all_engines_of_a_cpu(tmp_path):
    folder = ("model.bundled=null", f'model.path="{model_folder(tmp_path)}"')
    (fault,) = found("machine", case("demo", *folder, machine=replace(MACHINE, memory_available=4 * GIB)))
    assert "prefill-0 weights 0.0MiB + libraries 2.0GiB + KV cache 256.0MiB" in fault.what
    assert not found("machine", case("demo", *folder))
    assert not found("machine", case("api-throughput", machine=replace(MACHINE, memory_available=0)))


@pytest.mark.parametrize("rule", [rule.name.removeprefix("memory/") for rule in memory.RULES])
def test_a_model_that_nobody_knows_is_not_judged(rule):
    judged = case("api-throughput", "model.id=org/other")
    assert not found(rule, judged)


@pytest.mark.parametrize("name", ["api-throughput", "batch-cost", "interactive", "single-gpu", "demo"])
def test_a_shipped_profile_has_none(name):
    assert not [fault for rule in memory.RULES for fault in rule.judge(case(name))]


def test_devices_of_unknown_memory_are_said_with_the_key():
    told = [*memory.not_judged(case("api-throughput", machine=replace(MACHINE, gpus=())))]
    assert sorted(each.partition(";")[0] for each in told) == [
        f"memory of {role}: how much its devices have is not known here" for role in ("decode", "prefill")
    ]
    assert all("device_memory, e.g. 80GiB" in each for each in told)
    assert not [*memory.not_judged(case("api-throughput"))]
    assert not [*memory.not_judged(case("demo"))]


def test_a_model_that_nobody_knows_is_said():
    told = [*memory.not_judged(case("interactive", "model.id=org/other"))]
    assert told[0].startswith("memory of aggregated: ")
    assert "org/other" in told[0]
