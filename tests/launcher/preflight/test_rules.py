"""Would a plan run here? Each question with and without something to say."""

import os
import socket
import sys
from dataclasses import replace

import pytest

from launcher import machine, preflight
from launcher.errors import PreflightError
from launcher.inventory import Listener
from launcher.preflight import devices, engine_installed, memory, model_files, ports, proxy_files, tracing
from tests.launcher.builders import GIB, MACHINE, case, faults, model_folder


def with_model(folder, *overrides, machine=MACHINE):
    return case("demo", "model.bundled=null", f'model.path="{folder}"', *overrides, machine=machine)


@pytest.fixture
def installed(monkeypatch):
    """What ``find_spec`` finds; nothing is imported."""
    found = {"vllm", "nixl"}
    monkeypatch.setattr(engine_installed, "find_spec", lambda name: object() if name in found else None)
    return found


def test_a_plan_that_fits_passes(tmp_path, installed):
    assert not [*preflight.judge(with_model(model_folder(tmp_path)))]


def test_all_findings_come_together(tmp_path, installed):
    installed.clear()
    crowded = replace(MACHINE, memory_available=GIB, listeners={8000: Listener(4711, "nginx -g daemon")})
    with pytest.raises(PreflightError) as caught:
        preflight.refuse([*preflight.judge(with_model(tmp_path / "gone", machine=crowded))])
    text = str(caught.value)
    assert len(caught.value.messages) == 4
    for part in ("vLLM is not installed", "does not exist", "not enough memory", "port 8000"):
        assert part in text
    assert caught.value.exit_code == 4


def test_a_missing_engine_names_the_command_that_installs_it(installed):
    installed.clear()
    (cpu,) = faults(engine_installed.RULES, case("demo"))
    assert "/opt/duet/bin/python -m pip install '.[cpu]'" in cpu
    (gpu,) = faults(engine_installed.RULES, case("interactive"))
    assert "[gpu]" in gpu


def test_a_missing_transfer_library_is_found(installed):
    installed.discard("nixl")
    (finding,) = faults(engine_installed.RULES, case("demo"))
    assert finding.startswith("kv_transfer.connector: NIXL, which moves the KV cache, is not installed")
    installed.add("nixl_cu12")
    assert not faults(engine_installed.RULES, case("demo"))


@pytest.mark.parametrize(
    ("connector", "module", "package"),
    [
        ("mooncake", "mooncake", "mooncake-transfer-engine"),
        ("lmcache, lmcache: {remote_url: 'redis://x'}", "lmcache", "lmcache"),
    ],
)
def test_a_connector_s_own_library_is_asked_for_instead(installed, connector, module, package):
    installed.discard("nixl")
    settled = case("api-throughput", f"kv_transfer={{connector: {connector}}}")
    (finding,) = faults(engine_installed.RULES, settled)
    assert finding.endswith(f"/opt/duet/bin/python -m pip install {package}")
    installed.add(module)
    assert not faults(engine_installed.RULES, settled)


def test_files_need_no_library(installed):
    installed.discard("nixl")
    assert not faults(engine_installed.RULES, case("demo", "kv_transfer={connector: shared-storage}"))


def test_an_aggregated_engine_needs_no_transfer_library(installed):
    installed.discard("nixl")
    assert not faults(engine_installed.RULES, case("single-gpu"))


@pytest.mark.parametrize(
    ("torch", "vision", "broken"), [("2.13.0+cpu", "0.28.0", True), ("2.13.0+cpu", "0.28.0+cpu", False)]
)
def test_a_torchvision_for_another_torch_is_found(installed, monkeypatch, torch, vision, broken):
    installed.add("torchvision")
    monkeypatch.setattr(engine_installed, "version", {"torch": torch, "torchvision": vision}.__getitem__)
    assert bool(faults(engine_installed.RULES, case("demo"))) is broken


def test_another_engine_command_must_exist(tmp_path, installed):
    installed.clear()
    (finding,) = faults(engine_installed.RULES, case("demo", "engine_command=[no-such-engine]"))
    assert finding.startswith("engine_command: engine_command starts no-such-engine, which is not on the PATH: ")
    assert not faults(engine_installed.RULES, case("demo", f"engine_command=[{sys.executable}]"))


def test_a_missing_folder_points_to_the_key(tmp_path):
    (finding,) = faults(model_files.RULES, with_model(tmp_path / "gone"))
    assert finding.startswith(f"model.path: the model's folder {tmp_path / 'gone'} does not exist: check model.path")


def test_a_folder_without_a_configuration_is_no_model(tmp_path):
    (finding,) = faults(model_files.RULES, with_model(tmp_path))
    assert "has no config.json" in finding


def test_a_folder_without_weights_is_unfinished(tmp_path):
    (model_folder(tmp_path) / "pytorch_model.bin").unlink()
    (finding,) = faults(model_files.RULES, with_model(tmp_path))
    assert "has no weights" in finding


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_a_whole_folder_passes(tmp_path, weights):
    (model_folder(tmp_path) / "pytorch_model.bin").rename(tmp_path / weights)
    assert not faults(model_files.RULES, with_model(tmp_path))


def test_a_hub_id_is_left_to_the_engine():
    assert not faults(model_files.RULES, case("interactive"))


def test_gpus_that_are_named_where_there_are_none_point_to_a_machine_that_has_some():
    judged = case("api-throughput", "roles.decode.devices=[2, 3]", machine=replace(MACHINE, gpus=()))
    (finding,) = faults(devices.RULES, judged)
    assert finding.startswith("roles.decode.devices: this machine has no GPU 2, 3: run it where they are")
    elsewhere = case("api-throughput", "roles.decode.devices=[2, 9]")
    assert "choose among 0 (GPU-0), 1 (GPU-1)" in faults(devices.RULES, elsewhere)[0]


def test_missing_gpus_are_counted():
    (finding,) = faults(devices.RULES, case("api-throughput", machine=replace(MACHINE, gpus=MACHINE.gpus[:2])))
    assert finding.startswith("device: the plan needs 4 GPU(s) and this machine shows 2")
    assert not faults(devices.RULES, case("api-throughput"))
    assert not faults(devices.RULES, case("demo", machine=replace(MACHINE, gpus=())))


def test_memory_that_does_not_suffice_is_broken_down(tmp_path):
    settled = with_model(model_folder(tmp_path), "roles.decode.kv_cache_memory=8GiB")
    (finding,) = faults(memory.RULES, replace(settled, inventory=replace(MACHINE, memory_available=10 * GIB)))
    assert finding.startswith("roles: not enough memory: 2 engines need about 12.3GiB")
    assert "10.0GiB are free" in finding
    assert not faults(memory.RULES, settled)


def test_a_gpu_measures_for_itself():
    assert not faults(memory.RULES, case("api-throughput", machine=replace(MACHINE, memory_available=0)))


def test_a_kv_cache_that_cannot_hold_one_request_is_found(tmp_path):
    settled = with_model(model_folder(tmp_path), "roles.prefill.kv_cache_memory=3MiB")
    (finding,) = faults(memory.RULES, settled)
    assert finding == (
        "roles.prefill.kv_cache_memory: 3.0MiB hold a request of 1408 tokens at most, but one may have 2048 "
        "(model.max_model_len): give at least 4352KiB or lower model.max_model_len"
    )


def test_a_kv_cache_that_just_holds_one_request_and_the_block_that_the_engine_holds_back_passes(tmp_path):
    folder = model_folder(tmp_path)
    assert not faults(memory.RULES, with_model(folder, "roles.prefill.kv_cache_memory=4352KiB"))
    assert len(faults(memory.RULES, with_model(folder, "roles.prefill.kv_cache_memory=4351KiB"))) == 1


def test_the_precision_of_the_kv_cache_counts(tmp_path):
    folder = model_folder(tmp_path)
    sizes = ("roles.prefill.kv_cache_memory=3MiB", "roles.decode.kv_cache_memory=3MiB")
    assert len([*faults(memory.RULES, with_model(folder, *sizes, "model.dtype=float32"))]) == 2
    assert not faults(memory.RULES, with_model(folder, *sizes, "quantization.kv_cache_dtype=fp8"))


@pytest.mark.parametrize("config", [{"num_hidden_layers": None}, {"num_attention_heads": None}])
def test_a_model_whose_configuration_does_not_tell_is_not_judged(tmp_path, config):
    folder = model_folder(tmp_path, config)
    assert not faults(memory.RULES, with_model(folder, "roles.prefill.kv_cache_memory=1MiB"))


def test_the_owner_of_a_taken_port_is_named():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        here = machine.look({})
    (finding,) = faults(ports.RULES, case("demo", f"proxy.port={port}", machine=here))
    command = here.listeners[port].command
    assert command
    assert f"port {port} for the proxy is taken by pid {os.getpid()} ({command}): " in finding
    assert f"--set proxy.port={port + 1}" in finding


def test_the_owner_of_a_taken_port_may_be_unknown():
    machine_of_others = replace(MACHINE, listeners={8000: Listener(None, "a process of another user")})
    (finding,) = faults(ports.RULES, case("demo", machine=machine_of_others))
    assert "taken by a process of another user: " in finding


def test_a_free_port_passes():
    assert not faults(ports.RULES, case("demo", machine=replace(MACHINE, listeners={8001: Listener(1, "x")})))


def test_a_file_in_place_of_the_model_folder_is_told_apart(tmp_path):
    file = tmp_path / "config.json"
    file.write_text("{}")
    (finding,) = faults(model_files.RULES, with_model(file))
    assert finding.startswith(f"model.path: {file} is no folder")


@pytest.mark.parametrize("host", ["no-such-host.invalid", "203.0.113.1"])
def test_an_address_that_is_not_ours_is_found_before_the_start(host):
    settled = case("demo", f"proxy.host={host}", "proxy.port=8999")
    (finding,) = faults(ports.RULES, settled)
    assert finding.startswith(f"proxy.host: the proxy cannot listen on {host}:8999 (")


def test_tracing_without_its_packages_names_the_command_that_installs_them(monkeypatch):
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    assert not faults(tracing.RULES, case("demo"))
    (finding,) = faults(tracing.RULES, case("demo", "proxy.tracing={endpoint: 'http://127.0.0.1:4318'}"))
    assert "/opt/duet/bin/python -m pip install '.[tracing]'" in finding


def test_reference_answers_that_are_missing_are_told_before_engines_load_with_the_verb_that_makes_them():
    (finding,) = faults(proxy_files.RULES, case("demo", "proxy.reference.file=/none.json"))
    assert "proxy.reference.file: there is no file /none.json" in finding
    assert "launcher baseline URL --out /none.json" in finding


def test_tracing_with_its_packages_passes():
    assert not faults(tracing.RULES, case("demo", "proxy.tracing={endpoint: 'http://127.0.0.1:4318'}"))
