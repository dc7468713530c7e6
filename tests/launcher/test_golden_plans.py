"""The plans of the shipped profiles, and of one for each KV connector, on a fixed machine, byte for byte.

After a change on purpose: ``DUET_UPDATE_GOLDEN=1 python -m pytest tests/launcher/test_golden_plans.py``, and read the
difference.
"""

import os
from pathlib import Path

import pytest

from launcher.loader import shipped_profiles
from launcher.plan import to_json
from proxy.topology import ConnectorKind
from tests.launcher.builders import plan

GOLDEN = Path(__file__).parent.parent / "golden" / "plans"
CONNECTORS = GOLDEN.with_name("connectors")


@pytest.mark.parametrize("name", shipped_profiles())
def test_a_shipped_profile_gives_the_plan_that_was_reviewed(name):
    assert_is_golden(to_json(plan(name, name=name)), GOLDEN / f"{name}.json")


@pytest.mark.parametrize("name", sorted(file.stem for file in CONNECTORS.glob("*.yaml")))
def test_each_connector_gives_the_plan_that_was_reviewed(name):
    assert_is_golden(to_json(plan(CONNECTORS / f"{name}.yaml", name=name)), CONNECTORS / f"{name}.json")


def test_every_connector_has_a_plan_for_gpus():
    kinds = {file.stem.removesuffix("-cuda") for file in CONNECTORS.glob("*-cuda.yaml")}
    assert kinds | {ConnectorKind.NIXL_PULL} == set(ConnectorKind)


def assert_is_golden(made: str, file: Path) -> None:
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
