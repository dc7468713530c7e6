"""Every rule of preflight can fire, and holds its peace where there is nothing to say."""

import pytest

from launcher import loader, preflight
from launcher.preflight.matrix import COMBINATIONS
from tests.launcher.builders import LLAMA, case, model_folder, write
from tests.launcher.preflight.examples import EXAMPLES

ROLES = {
    "cpu": "{prefill: {kv_cache_memory: 1GiB}, decode: {kv_cache_memory: 1GiB}}",
    "cuda": "{prefill: {}, decode: {}}",
}


def found(tmp_path, example, overrides, config):
    folder = model_folder(tmp_path, config)
    text = f"description: x\ndevice: {example.device}\nmodel: {{path: {folder}}}\nroles: {ROLES[example.device]}\n"
    judged = case(write(tmp_path, text), *overrides)
    return {finding.rule: finding for finding in preflight.judge(judged, {preflight.Layer.STATIC})}


@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda each: each.name)
def test_a_combination_is_found_where_it_is_and_only_there(tmp_path, combination):
    example = EXAMPLES[combination.name]
    there = found(tmp_path, example, example.found, example.config)
    fine = example.config if example.fine_config is None else example.fine_config
    assert combination.name in there
    assert combination.name not in found(tmp_path, example, example.not_found, fine)


@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda each: each.name)
def test_what_is_said_of_a_combination_names_a_key_the_reason_and_the_fix(tmp_path, combination):
    example = EXAMPLES[combination.name]
    fault = found(tmp_path, example, example.found, example.config)[combination.name].fault
    assert "None" not in fault.what
    assert fault.key.split(".")[0] in {"device", "model", "roles", "quantization", "speculation", "kv_transfer"}
    assert fault.fix
    assert combination.source
    assert "{" not in fault.message.replace("{method: off}", "")


def test_every_combination_has_its_example_and_its_own_name():
    assert sorted(EXAMPLES) == sorted(combination.name for combination in COMBINATIONS)
    names = [rule.name for rule in preflight.RULES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", loader.shipped_profiles())
def test_a_shipped_profile_has_none(name):
    assert not [*preflight.judge(case(name), {preflight.Layer.STATIC}, with_model=False)]


def test_the_example_model_is_what_the_table_thinks():
    assert (LLAMA["num_attention_heads"], LLAMA["num_key_value_heads"]) == (8, 2)
