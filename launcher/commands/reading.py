"""Verbs that look at profiles and start nothing."""

import os

import typer

from launcher import loader, machine, preflight, show
from launcher.commands.options import (
    ModelOption,
    Output,
    OutputOption,
    ProfileArgument,
    RunDirectoryOption,
    SetOption,
    name_of,
    with_model,
)
from launcher.preflight.finding import Case, Layer
from launcher.settle import settle


def list_profiles(output: OutputOption = Output.TEXT) -> None:
    """The shipped profiles."""
    show.profiles({name: loader.load(name) for name in loader.shipped_profiles()}, as_json=output is Output.JSON)


def plan_profile(
    profile: ProfileArgument,
    run_dir: RunDirectoryOption,
    overrides: SetOption = None,
    model: ModelOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print exactly what `up` would run; starts nothing."""
    loaded = loader.load(profile, with_model(overrides, model))
    inventory, name, directory = machine.look(os.environ), name_of(profile), run_dir.absolute()
    settled, inventory = settle(loaded, inventory, name=name, run_directory=directory, environ=os.environ)
    show.plan(settled, as_json=output is Output.JSON)
    case = Case(loaded, settled, inventory, os.environ)
    for finding in preflight.judge(case, {Layer.STATIC}, with_model=case.model_is_there):
        typer.echo(f"{finding.fault.severity}: {finding.fault.message}", err=True)
