"""What a profile can try, and that a setting reaches the engines that generate and nothing else of them."""

import json

import pytest

from launcher import loader
from launcher.speculation import methods
from launcher.speculation.setting import OFF, Setting
from tests.launcher.builders import PAIR, plan, write

DRAFT = (
    PAIR
    + "    speculation: {method: draft_model, draft: org/small, num_speculative_tokens: 3, schedule: [[1, 9, 3]]}\n"
)
OF_A_ROLE = PAIR.replace("decode: {", "decode: {speculation: {method: ngram, num_speculative_tokens: 7}, ")


def configs(folder, text, setting):
    """By engine, what it is told of speculation."""
    file = str(write(folder, text))
    profile = loader.load(file)
    what = methods.written(setting, methods.available(profile))
    planned = plan(file, *methods.overrides(profile, what))
    option = "--speculative-config"
    return {
        each.name: json.loads(each.argv[each.argv.index(option) + 1]) if option in each.argv else None
        for each in planned.engines
    }


def test_n_grams_are_always_there_and_the_profiles_own_method_with_its_draft(tmp_path):
    assert [*methods.available(loader.load(str(write(tmp_path, PAIR))))] == ["ngram"]
    found = methods.available(loader.load(str(write(tmp_path, DRAFT))))
    assert found["draft_model"] == {"method": "draft_model", "draft": "org/small"}


@pytest.mark.parametrize("text", [PAIR, DRAFT, OF_A_ROLE])
def test_k_0_is_no_speculation_at_all_whatever_the_profile_says(tmp_path, text):
    assert configs(tmp_path, text, OFF) == {"prefill-0": None, "decode-0": None}


@pytest.mark.parametrize("text", [PAIR, DRAFT, OF_A_ROLE])
def test_n_grams_are_of_decode_only_and_with_the_k_that_is_tried(tmp_path, text):
    found = configs(tmp_path, text, Setting("ngram", 2))
    assert found["prefill-0"] is None
    looked_up = {} if text is OF_A_ROLE else {"prompt_lookup_max": 5, "prompt_lookup_min": 2}
    assert found["decode-0"] == {"method": "ngram", "num_speculative_tokens": 2, **looked_up}


def test_a_draft_is_on_both_roles_and_a_schedule_too(tmp_path):
    found = configs(tmp_path, DRAFT, Setting("draft_model", 4, ((1, 2, 4), (3, 16, 0))))
    assert found["prefill-0"] == found["decode-0"]
    assert found["decode-0"]["num_speculative_tokens"] == 4
    assert found["decode-0"]["num_speculative_tokens_per_batch_size"] == [[1, 2, 4], [3, 16, 0]]
    assert found["decode-0"]["model"] == "org/small"


def test_engines_that_generate_share_a_load(tmp_path):
    text = PAIR.replace("decode: {", "decode: {replicas: 3, max_num_seqs: 32, ")
    assert methods.engines(loader.load(str(write(tmp_path, text)))) == (3, 32)
    assert methods.engines(loader.load("interactive")) == (1, 16)


def test_temperatures_are_weighed_by_how_often_they_come_and_1_where_none_is_said():
    assert methods.temperatures([0.0, 0.0, None, 0.0]) == {0.0: 0.75, 1.0: 0.25}
