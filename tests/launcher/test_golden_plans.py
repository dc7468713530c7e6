"""The plans of the shipped profiles on a fixed machine, byte for byte.

After a change on purpose: ``DUET_UPDATE_GOLDEN=1 python -m pytest tests/launcher/test_golden_plans.py``, and read the
difference.
"""

import os
from pathlib import Path

import pytest

from launcher.loader import shipped_profiles
from launcher.plan import to_json
from tests.launcher.builders import plan

GOLDEN = Path(__file__).parent.parent / "golden" / "plans"


@pytest.mark.parametrize("name", shipped_profiles())
def test_a_shipped_profile_gives_the_plan_that_was_reviewed(name):
    made = to_json(plan(name, name=name))
    file = GOLDEN / f"{name}.json"
    if os.environ.get("DUET_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(made.encode())
    assert made.encode() == file.read_bytes()


@pytest.mark.parametrize("name", shipped_profiles())
def test_the_same_input_gives_the_same_bytes(name):
    assert to_json(plan(name)) == to_json(plan(name))


def test_every_golden_plan_has_its_profile():
    assert {file.stem for file in GOLDEN.iterdir()} <= set(shipped_profiles())


def test_five_profiles_ship():
    assert set(shipped_profiles()) == {"api-throughput", "batch-cost", "demo", "interactive", "single-gpu"}
