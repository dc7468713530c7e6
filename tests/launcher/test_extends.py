"""A profile that builds on another."""

import pytest

from launcher import loader
from launcher.errors import ProfileError
from launcher.profile import Device
from proxy.settings import FailurePolicy
from tests.launcher.builders import PAIR, write


def faults(reference):
    with pytest.raises(ProfileError) as caught:
        loader.load(str(reference))
    return list(caught.value.messages)


def test_a_shipped_profile_can_be_the_base(tmp_path):
    profile = loader.load(str(write(tmp_path, "extends: demo\ndescription: mine\nproxy: {port: 9000}\n")))
    assert (profile.description, profile.device, profile.proxy.port) == ("mine", Device.CPU, 9000)


def test_the_base_may_be_a_path_relative_to_the_file(tmp_path):
    (tmp_path / "bases").mkdir()
    (tmp_path / "mine").mkdir()
    write(tmp_path / "bases", PAIR, "pair.yaml")
    file = write(tmp_path / "mine", "extends: ../bases/pair.yaml\ndescription: mine\n")
    assert loader.load(str(file)).description == "mine"


def test_the_nearest_of_a_chain_wins(tmp_path):
    write(tmp_path, PAIR + "    proxy: {port: 1, failure_policy: fail}\n    startup_timeout: 1\n", "a.yaml")
    write(tmp_path, "extends: a.yaml\nproxy: {port: 2}\nstartup_timeout: 2\n", "b.yaml")
    profile = loader.load(str(write(tmp_path, "extends: b.yaml\nproxy: {port: 3}\n", "c.yaml")))
    assert (profile.proxy.port, profile.startup_timeout) == (3, 2)
    assert profile.proxy.failure_policy is FailurePolicy.FAIL


def test_mappings_merge_and_lists_replace(tmp_path):
    base = PAIR.replace("decode: {", "decode: {env: {A: a, B: b}, engine_args: {x: [1, 2]}, ")
    write(tmp_path, base, "base.yaml")
    file = write(tmp_path, "extends: base.yaml\nroles: {decode: {env: {B: c}, engine_args: {x: [3]}}}\n")
    decode = loader.load(str(file)).roles.decode
    assert decode.env == {"A": "a", "B": "c"}
    assert decode.engine_args == {"x": [3]}
    assert int(decode.kv_cache_memory) == 256 * 2**20


def test_null_removes_what_the_base_has(tmp_path):
    write(tmp_path, PAIR, "base.yaml")
    text = "roles: {prefill: null, decode: null, aggregated: {kv_cache_memory: 1GiB}}\nmodel: {path: null, id: a/b}\n"
    profile = loader.load(str(write(tmp_path, f"extends: base.yaml\n{text}")))
    assert profile.roles.prefill is None
    assert profile.model.path is None


@pytest.mark.parametrize(
    ("where", "over"),
    [
        ("    startup_timeout: 5\n", "startup_timeout: null"),
        ("    proxy: {port: 5}\n", "proxy: null"),
        ("    ports: {engine: 5}\n", "ports: {engine: null}"),
    ],
)
def test_null_brings_the_default_back(tmp_path, where, over):
    write(tmp_path, PAIR + where, "base.yaml")
    profile = loader.load(str(write(tmp_path, f"extends: base.yaml\n{over}\n")))
    assert (profile.startup_timeout, profile.proxy.port, profile.ports.engine) == (600, 8000, 8100)


def test_null_removes_an_environment_variable(tmp_path):
    write(tmp_path, PAIR.replace("decode: {", "decode: {env: {A: a, B: b}, "), "base.yaml")
    profile = loader.load(str(write(tmp_path, "extends: base.yaml\nroles: {decode: {env: {A: null}}}\n")))
    assert profile.roles.decode.env == {"B": "b"}


def test_a_fault_is_told_where_it_stands(tmp_path):
    base = write(tmp_path, PAIR + "    proxy: {port: 0}\n", "base.yaml")
    file = write(tmp_path, "extends: base.yaml\nport: 1\n")
    found = faults(file)
    assert [fault.split(": ")[:2] for fault in found] == [[f"{base}:7", "proxy.port"], [f"{file}:2", "port"]]


def test_a_fault_that_the_base_causes_is_told_with_the_base(tmp_path):
    base = write(tmp_path, PAIR, "base.yaml")
    (fault,) = faults(write(tmp_path, "extends: base.yaml\nroles: {prefill: {kv_cache_memory: x}}\n"))
    assert not fault.startswith(str(base))


def test_a_circle_is_refused(tmp_path):
    write(tmp_path, "extends: b.yaml\n", "a.yaml")
    file = write(tmp_path, "extends: a.yaml\n", "b.yaml")
    (fault,) = faults(file)
    assert "extends goes round in a circle: b.yaml -> a.yaml" in fault


def test_a_profile_cannot_extend_itself(tmp_path):
    (fault,) = faults(write(tmp_path, "extends: mine.yaml\n"))
    assert "circle" in fault


@pytest.mark.parametrize("base", ["gone.yaml", "./gone.yaml", "dmeo"])
def test_a_missing_base_is_told_with_the_line_that_names_it(tmp_path, base):
    file = write(tmp_path, f"description: x\nextends: {base}\n")
    (fault,) = faults(file)
    assert fault.startswith(f"{file}:2: extends: ")
    assert base.removeprefix("./") in fault


@pytest.mark.parametrize("base", ["[demo, interactive]", "5", "{a: b}"])
def test_the_base_is_one_name(tmp_path, base):
    file = write(tmp_path, f"description: x\nextends: {base}\n")
    (fault,) = faults(file)
    assert fault.startswith(f"{file}:2: extends: name one profile")
