"""The one way from a profile to the plan of a machine, with the digests of what lies there."""

from collections.abc import Mapping
from pathlib import Path

from launcher import planner
from launcher.inventory import Inventory
from launcher.plan import Plan
from launcher.profile import Profile
from launcher.weights import with_weights


def settle(
    profile: Profile, inventory: Inventory, *, name: str, run_directory: Path, environ: Mapping[str, str]
) -> tuple[Plan, Inventory]:
    """The plan, and the inventory with the digests of all that its engines load.

    A plan says which weights to look at, and their digests are a part of it: hence twice. Raises
    :class:`launcher.errors.PlanError`.
    """
    drafted = planner.plan(profile, inventory, name=name, run_directory=run_directory)
    inventory = with_weights(inventory, drafted, environ)
    return planner.plan(profile, inventory, name=name, run_directory=run_directory), inventory
