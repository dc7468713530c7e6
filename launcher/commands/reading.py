"""Verbs that look at profiles and start nothing."""

import os
from enum import StrEnum
from typing import Annotated

import typer

from launcher import loader, machine, preflight, show
from launcher.cluster.judged import judged
from launcher.cluster.values import plan_for_cluster
from launcher.commands.options import (
    ModelOption,
    Output,
    OutputOption,
    ProfileArgument,
    RunDirectoryOption,
    SetOption,
    name_of,
    warn,
    with_model,
)
from launcher.preflight.finding import Case, Layer
from launcher.settle import settle


class Place(StrEnum):
    """Where a plan runs."""

    MACHINE = "machine"
    CLUSTER = "cluster"


def list_profiles(output: OutputOption = Output.TEXT) -> None:
    """The shipped profiles."""
    show.profiles({name: loader.load(name) for name in loader.shipped_profiles()}, as_json=output is Output.JSON)


def plan_profile(
    profile: ProfileArgument,
    run_dir: RunDirectoryOption,
    overrides: SetOption = None,
    model: ModelOption = None,
    place: Annotated[Place, typer.Option("--for", help="This machine, or the pods of a cluster.")] = Place.MACHINE,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print exactly what would run; starts nothing."""
    loaded = loader.load(profile, with_model(overrides, model))
    if place is Place.CLUSTER:
        show.plan(plan_for_cluster(loaded, name_of(profile)), as_json=output is Output.JSON)
        warn(judged(loaded, name_of(profile), os.environ).findings)
        return
    inventory, name, directory = machine.look(os.environ), name_of(profile), run_dir.absolute()
    settled, inventory = settle(loaded, inventory, name=name, run_directory=directory, environ=os.environ)
    show.plan(settled, as_json=output is Output.JSON)
    case = Case(loaded, settled, inventory, os.environ)
    warn(preflight.judge(case, {Layer.STATIC}, with_model=case.model_is_there))
