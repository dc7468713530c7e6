"""How often the gate is wrong: computed or simulated, and as docs/quantization.md tells it."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from launcher.quantize.gate import token_checks
from launcher.quantize.gate.compare import Difference
from launcher.quantize.gate.intervals import paired_loss
from launcher.quantize.gate.power import POWER, chance_to_fail, chance_to_pass, needed
from launcher.quantize.gate.shape import Limits, Verdict
from tests.launcher.quantize.gate.simulated import KL, with_kl, with_loss

DOCUMENTED = (Path(__file__).parents[4] / "docs" / "quantization.md").read_text()
FLIPS = (0.01, 0.012, 0.015, 0.02, 0.04, 0.08, 0.16, 0.3)
ITEMS = (50, 100, 199, 268, 300, 414, 500, 750, 1000, 2000, 5000)
WRONG = 0.05
TRIALS = 200


@pytest.mark.parametrize("flips", FLIPS)
def test_a_loss_of_exactly_the_limit_passes_or_fails_by_chance_in_one_of_twenty_at_most(flips):
    assert max(chance_to_pass(flips, items, 1.0, 0.95, 1.0) for items in ITEMS) <= WRONG
    assert max(chance_to_fail(flips, items, 1.0, 0.95, 1.0) for items in ITEMS) <= WRONG


@pytest.mark.parametrize("flips", FLIPS)
def test_a_greater_loss_passes_less_often(flips):
    if flips >= 0.02:
        chances = [chance_to_pass(flips, 2000, 1.0, 0.95, loss) for loss in (0.0, 0.5, 1.0, 1.5, 2.0)]
        assert chances == sorted(chances, reverse=True)


@pytest.mark.parametrize("flips", [4, 20, 40, 80, 160])
@pytest.mark.parametrize("limit", [0.5, 1.0, 3.0])
def test_as_many_items_as_are_said_to_be_needed_give_a_pass_in_four_of_five(flips, limit):
    items = needed(flips, 1000, limit, 0.95)
    assumed = (flips + 1) / 1025
    assert chance_to_pass(assumed, items, limit, 0.95) >= POWER
    assert chance_to_pass(assumed, int(items * 0.9), limit, 0.95) < POWER


def test_no_change_in_few_items_is_not_taken_for_a_share_of_none():
    assert 2000 < needed(0, 10, 1.0, 0.95) < 3000
    assert needed(0, 1000, 1.0, 0.95) < 700


def test_chances_are_those_of_the_bounds():
    random = np.random.default_rng(3)
    drawn = random.multinomial(800, (0.025, 0.015, 0.96), 4000)
    bounds = {(w, b): paired_loss(w, b, 800, 0.95) for w, b, _ in {tuple(map(int, each)) for each in drawn}}
    found = [bounds[int(w), int(b)] for w, b, _ in drawn]
    assert np.mean([each.high < 1 for each in found]) == pytest.approx(chance_to_pass(0.04, 800, 1, 0.95, 1), abs=0.01)
    assert np.mean([each.low > 1 for each in found]) == pytest.approx(chance_to_fail(0.04, 800, 1, 0.95, 1), abs=0.01)


def rates(make: Callable[[np.random.Generator], list[Difference]], check, limits: Limits, trials: int = TRIALS):
    """Shares of passes and fails."""
    random = np.random.default_rng(7)
    verdicts = [check(make(random), limits).verdict for _ in range(trials)]
    return verdicts.count(Verdict.PASS) / trials, verdicts.count(Verdict.FAIL) / trials


def kl_check(differences, limits):
    return token_checks.kl(differences, limits, is_proxy=True)


SIMULATED = {
    (f"{records}", name): (records, kind, variation)
    for records in (32, 64)
    for name, kind, variation in (
        ("KL, records alike", "kl", 0.3),
        ("KL, records unlike", "kl", 0.7),
        ("accuracy, records alike", "loss", 0.3),
        ("accuracy, records unlike", "loss", 0.7),
    )
}


def simulate(records: int, kind: str, variation: float, trials: int = TRIALS) -> tuple[float, float]:
    """Of models that are exactly at the limit."""
    if kind == "kl":
        return rates(lambda random: with_kl(records, random, of_records=variation), kl_check, Limits(kl=KL), trials)
    made = {"points": 1.0, "flips": 0.06, "of_records": variation}
    return rates(lambda random: with_loss(records, random, **made), token_checks.accuracy, Limits(loss=1.0), trials)


@pytest.mark.parametrize("case", SIMULATED, ids=" records: ".join)
def test_next_token_figures_are_wrong_about_as_often_as_documented(case):
    row = next(row for row in rows() if row[:2] == list(case))
    passes, fails = simulate(*SIMULATED[case])
    assert passes == pytest.approx(float(row[2].removesuffix(" %")) / 100, abs=0.045)
    assert fails == pytest.approx(float(row[3].removesuffix(" %")) / 100, abs=0.045)


def test_the_documented_table_of_labelled_tasks_is_the_computed_one():
    for flips in (0.02, 0.04, 0.08, 0.16):
        assert labelled_row(flips) in DOCUMENTED


def labelled_row(flips: float) -> str:
    items = needed(round(flips * 1_000_000), 1_000_000, 1.0, 0.95)
    wrong = (chance(flips, items, 1.0, 0.95, 1.0) for chance in (chance_to_pass, chance_to_fail))
    told = " | ".join(f"{100 * each:.1f} %" for each in (*wrong, chance_to_pass(flips, items, 1.0, 0.95)))
    return f"| {flips:.0%} | {items:,} | {told} |".replace("%", " %", 1)


def rows() -> list[list[str]]:
    return [re.split(r" *\| *", line.strip("| ")) for line in DOCUMENTED.splitlines() if line.startswith("|")]
