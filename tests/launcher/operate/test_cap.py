"""An engine's command line with at most so many draft tokens."""

import json

import pytest

from launcher.operate.speculation.cap import argv_with, capped, k_of
from proxy.topology import Role

NGRAM = {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}
TUNED = NGRAM | {"num_speculative_tokens_per_batch_size": [[1, 4, 5], [5, 16, 2], [17, 64, 0]]}
DRAFT = {"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 3}


def argv(config: dict) -> tuple[str, ...]:
    speculation = ("--speculative-config", json.dumps(config)) if config else ()
    return ("vllm", "serve", *speculation, "--port", "1")


@pytest.mark.parametrize(
    ("config", "cap", "found"),
    [
        (NGRAM, 5, NGRAM),
        (NGRAM, 9, NGRAM),
        (NGRAM, 2, NGRAM | {"num_speculative_tokens": 2}),
        (NGRAM, 0, {}),
        (
            TUNED,
            2,
            TUNED
            | {
                "num_speculative_tokens": 2,
                "num_speculative_tokens_per_batch_size": [[1, 4, 2], [5, 16, 2], [17, 64, 0]],
            },
        ),
        (TUNED, 0, {}),
        (DRAFT, 0, DRAFT | {"num_speculative_tokens_per_batch_size": [[1, 1, 0]]}),
        ({"method": "suffix"}, 4, {"method": "suffix", "num_speculative_tokens": 4}),
        ({}, 0, {}),
    ],
)
def test_the_cap_goes_over_the_schedule(config: dict, cap: int, found: dict):
    assert capped(config, cap, Role.DECODE) == found


def test_a_draft_of_an_aggregated_engine_is_not_loaded_when_it_is_not_used():
    assert capped(DRAFT, 0, Role.AGGREGATED) == {}


@pytest.mark.parametrize(
    ("config", "k"),
    [(NGRAM, 5), (TUNED, 5), (capped(DRAFT, 0, Role.DECODE), 0), ({"method": "suffix"}, 24), ({}, 0)],
)
def test_k_is_the_most_that_may_be_drafted(config: dict, k: int):
    assert k_of(argv(config)) == k


def test_the_rest_of_the_command_line_stays_as_it_is():
    assert argv_with(argv(NGRAM), 5, Role.DECODE) == argv(NGRAM)
    assert argv_with(argv(NGRAM), 2, Role.DECODE) == (
        *("vllm", "serve", "--port", "1", "--speculative-config"),
        json.dumps(NGRAM | {"num_speculative_tokens": 2}),
    )


def test_an_engine_that_does_not_speculate_is_not_told_to_report_its_acceptance():
    reports = ("--per-request-spec-decode-metrics", "summary")

    assert argv_with((*argv(NGRAM), *reports), 0, Role.DECODE) == ("vllm", "serve", "--port", "1")
    assert set(reports) <= {*argv_with((*argv(NGRAM), *reports), 2, Role.DECODE)}
