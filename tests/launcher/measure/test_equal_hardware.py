"""A profile with prefill and decode becomes an aggregated one on the same hardware."""

import pytest

from launcher import loader
from launcher.errors import MeasureError
from launcher.measure.equal_hardware import aggregated
from tests.launcher.builders import PAIR, plan, write

GPUS = """\
    description: six GPUs
    device: cuda
    model: {id: org/model}
    roles:
      prefill: {replicas: 2, tensor_parallel: 1, max_num_batched_tokens: 16384}
      decode: {replicas: 1, tensor_parallel: 2, max_num_seqs: 64}
"""


def derived(folder, text, *overrides):
    file = str(write(folder, text))
    found = aggregated(loader.load(file, overrides), cores=8)
    return loader.load(file, [*overrides, *found.overrides]), found, file


def test_as_many_instances_each_with_decodes_settings_and_no_connector(tmp_path):
    profile, found, file = derived(tmp_path, PAIR)
    role = profile.roles.aggregated
    assert role is not None
    assert (role.replicas, role.kv_cache_memory) == (2, 256 * 2**20)
    planned = plan(file, *found.overrides)
    assert planned.connector is None
    assert [each.role for each in planned.engines] == ["aggregated", "aggregated"]
    assert not any("kv-transfer" in option for each in planned.engines for option in each.argv)
    assert any("2 aggregated instances" in each for each in found.said)


def test_gpus_are_divided_into_instances_of_decodes_size(tmp_path):
    profile, _, _ = derived(tmp_path, GPUS)
    role = profile.roles.aggregated
    assert role is not None
    assert (role.replicas, role.tensor_parallel, role.max_num_seqs) == (2, 2, 64)
    assert role.max_num_batched_tokens == 16384


def test_gpus_that_make_no_whole_instances_are_refused(tmp_path):
    with pytest.raises(MeasureError, match="3 devices in all make no whole instances of 2"):
        derived(tmp_path, GPUS, "roles.prefill.replicas=1")


def test_devices_and_cores_of_both_roles_are_used(tmp_path):
    profile, found, _ = derived(tmp_path, GPUS, "roles.prefill.devices=[0, 1]", "roles.decode.devices=[2, 3]")
    assert profile.roles.aggregated is not None
    assert profile.roles.aggregated.devices == [0, 1, 2, 3]
    profile, found, _ = derived(tmp_path, PAIR, "roles.prefill.cores=2", "roles.decode.cores=4")
    assert profile.roles.aggregated is not None
    assert profile.roles.aggregated.cores == 3
    assert any("3 cores" in each for each in found.said)


def test_speculation_of_decode_stays(tmp_path):
    profile, _, _ = derived(tmp_path, PAIR, 'roles.decode.speculation={"method": "ngram", "num_speculative_tokens": 3}')
    assert profile.roles.aggregated is not None
    assert profile.roles.aggregated.speculation is not None


def test_an_aggregated_profile_is_refused(tmp_path):
    with pytest.raises(MeasureError, match="aggregated already"):
        aggregated(loader.load("interactive"), cores=8)
