"""Settings of the proxy that would run and yet do not do what they seem to."""

import pytest

from launcher import loader
from launcher.errors import ProfileError
from launcher.preflight import thresholds
from tests.launcher.builders import case, faults, model_folder


def remarks(reference: str, *overrides: str) -> list[str]:
    return faults(thresholds.RULES, case(reference, *overrides))


def test_a_shipped_profile_needs_no_remark():
    assert [remark for name in loader.shipped_profiles() for remark in remarks(name)] == []


@pytest.mark.parametrize("key", ["shorter_than", "uncached_shorter_than"])
def test_a_threshold_above_every_prompt_is_remarked(key):
    longest = "model.max_model_len=2048"
    assert remarks("demo", longest, f"proxy.pd.{key}=2047") == []
    (remark,) = remarks("demo", longest, f"proxy.pd.{key}=2048")
    assert remark == (
        f"proxy.pd.{key}: 2048 turns PD off for every request, since prompt and answer together have at most 2048 "
        "tokens (model.max_model_len): lower it, or use the role aggregated"
    )


def test_the_models_own_length_counts_when_the_profile_names_none(tmp_path):
    folder = model_folder(tmp_path, {"max_position_embeddings": 1024})
    own = ("model.bundled=null", f'model.path="{folder}"', "model.max_model_len=null")
    assert len(remarks("demo", *own, "proxy.pd.shorter_than=1024")) == 1
    assert remarks("demo", *own, "proxy.pd.shorter_than=1000") == []


def test_settings_for_prefill_have_no_effect_without_it():
    found = remarks("single-gpu", "proxy.pd.idle_decode=true", "proxy.selection.prefill=ttft")
    assert [remark.split(" has no effect")[0] for remark in found] == ["proxy.pd: it", "proxy.selection.prefill: ttft"]


@pytest.mark.parametrize(
    ("override", "fault"),
    [
        ("proxy.pd.shorter_than=0", "no prompt is shorter than that: null turns a threshold off, not 0"),
        ("proxy.selection.decode=ttft", "ttft is a policy for prefill"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(override, fault):
    with pytest.raises(ProfileError, match=fault):
        loader.load("demo", [override])
