"""The verb that writes a plan for something else to run."""

import os
import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from launcher import loader, machine, preflight, rendered
from launcher.commands.options import ModelOption, ProfileArgument, SetOption, name_of, with_model
from launcher.plan import Plan
from launcher.preflight.finding import Case, Layer
from launcher.settle import settle
from launcher.systemd import next_steps
from launcher.systemd.units import render


class Format(StrEnum):
    """What runs the plan."""

    SYSTEMD = "systemd"


def render_profile(
    profile: ProfileArgument,
    to: Annotated[Format, typer.Option("--to", help="What will run it.")],
    out: Annotated[
        Path | None, typer.Option("--out", show_default="./duet-PROFILE", help="The folder, which stays where it is.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", help="For the system's manager, run by this user; default: for your own manager."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite also what somebody else has written.")] = False,
    overrides: SetOption = None,
    model: ModelOption = None,
) -> None:
    """Write what `up` would run as files for something else to run; starts nothing."""
    loaded, name = loader.load(profile, with_model(overrides, model)), name_of(profile)
    folder = (out or Path(f"duet-{name}")).absolute()
    inventory = replace(machine.look(os.environ), listeners={})  # who listens just now is of no matter
    plan, inventory = settle(loaded, inventory, name=name, run_directory=folder, environ=os.environ)
    case = Case(loaded, plan, inventory, os.environ)
    findings = [*preflight.judge(case, {Layer.STATIC}, with_model=case.model_is_there)]
    preflight.refuse(findings)
    match to:
        case Format.SYSTEMD:
            _systemd(plan, folder, user, force=force)
    for finding in findings:
        typer.echo(f"{finding.fault.severity}: {finding.fault.message}", err=True)


def _systemd(plan: Plan, folder: Path, user: str | None, *, force: bool) -> None:
    rendering = render(plan, folder, user=user)
    old = rendered.write(folder, rendering.files, force=force)
    for file in rendering.files:
        typer.echo(f"wrote {shlex.quote(file.path)}")
    typer.echo("\n" + "\n".join(next_steps.lines(rendering, folder, old, user=user)))
