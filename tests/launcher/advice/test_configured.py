"""What the plan of a running deployment tells."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from launcher.advice.configured import configured
from launcher.advice.facts import DRAFTS, FACTS, LOOKUPS, Value
from launcher.plan import Plan, to_json
from launcher.profile.speculation import SpeculationMethod
from tests.launcher.builders import PAIR, plan, write

INT8_FOLDER = {
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}},
    }
}


def told(*overrides: str, profile: str | Path = "interactive", model: dict | None = None) -> dict[str, Value | None]:
    return dict(configured(plan(profile, *overrides), model or {}))


def test_a_plan_that_was_written_down_tells_the_same():
    settled = plan("api-throughput")
    read = TypeAdapter(Plan).validate_json(to_json(settled))
    assert configured(read, {}) == configured(settled, {})


def test_devices_of_all_engines_are_counted_with_what_is_known_of_them():
    facts = told(profile="api-throughput")
    assert {name: facts[name] for name in ("device", "devices", "pd", "compute_capability")} == {
        "device": "cuda",
        "devices": 4,
        "pd": True,
        "compute_capability": 8.0,
    }
    assert told()["devices"] == 1


def test_cpus_are_one_device_however_many_engines_share_them(tmp_path: Path):
    facts = told(profile=write(tmp_path, PAIR))
    assert (facts["device"], facts["devices"], facts["compute_capability"]) == ("cpu", 1, None)


@pytest.mark.parametrize(
    ("overrides", "model", "quantized"),
    [
        ((), {}, "int8"),
        (("quantization.checkpoint_scheme=fp4",), {}, "other"),
        (("quantization={weights: fp8_per_tensor, checkpoint_scheme: null}",), {}, "fp8"),
        (("quantization.checkpoint_scheme=null",), {}, None),
        (("quantization.checkpoint_scheme=null",), {"model_type": "llama"}, "none"),
        (("quantization.checkpoint_scheme=null",), INT8_FOLDER, "int8"),
        (("quantization.checkpoint_scheme=null",), {"quantization_config": {"quant_method": "odd"}}, "other"),
    ],
)
def test_precision_comes_from_the_profile_the_engine_or_the_model(overrides, model, quantized):
    assert told(*overrides, model=model)["quantized"] == quantized


@pytest.mark.parametrize(
    ("override", "speculation"),
    [
        ("speculation=null", "none"),
        ("speculation={method: ngram, num_speculative_tokens: 4, draft: null}", "ngram"),
        ("speculation={method: mtp, draft: null}", "mtp"),
    ],
)
def test_speculation_is_what_the_engine_is_told(override, speculation):
    assert told(override)["speculation"] == speculation


def test_all_methods_are_known():
    known = {*LOOKUPS, *DRAFTS}
    assert {method.value for method in SpeculationMethod} - {"off"} == known
    assert known < set(FACTS["speculation"].words)


def test_an_objective_that_nobody_has_set_is_none():
    assert told()["ttft_objective"] is told()["tpot_objective"] is None
    named = told("objectives={ttft: 0.2, tpot: 0.05}")
    assert (named["ttft_objective"], named["tpot_objective"]) == (0.2, 0.05)
