"""The verb that writes a plan for something else to run."""

import os
import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from launcher import loader, machine, preflight, rendered
from launcher.cluster.judged import judged
from launcher.cluster.names import release_of
from launcher.cluster.values import to_yaml
from launcher.commands.options import ModelOption, ProfileArgument, SetOption, name_of, warn, with_model
from launcher.plan import PlannedFile
from launcher.preflight.finding import Case, Layer
from launcher.profile import Profile
from launcher.settle import settle
from launcher.systemd import next_steps
from launcher.systemd.units import render


class Format(StrEnum):
    """What runs the plan."""

    HELM = "helm"
    SYSTEMD = "systemd"


def render_profile(
    profile: ProfileArgument,
    to: Annotated[Format, typer.Option("--to", help="What will run it: our Helm chart, or systemd.")] = Format.HELM,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            show_default="standard output; systemd: ./duet-PROFILE",
            help="The file of values; of systemd the folder, which stays where it is.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", help="systemd: the system's manager, run by this user; default: your own manager."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite also what somebody else has written.")] = False,
    overrides: SetOption = None,
    model: ModelOption = None,
) -> None:
    """Write what would run as files for something else to run; starts nothing."""
    loaded, name = loader.load(profile, with_model(overrides, model)), name_of(profile)
    match to:
        case Format.HELM:
            if user is not None:
                raise typer.BadParameter("only systemd's units are run by a user", param_hint="--user")
            _helm(loaded, name, out, force=force)
        case Format.SYSTEMD:
            _systemd(loaded, name, out, user, force=force)


def _helm(profile: Profile, name: str, out: Path | None, *, force: bool) -> None:
    found = judged(profile, name, os.environ)
    text = to_yaml(found.values)
    if out is None:
        typer.echo(text, nl=False)
    else:
        file = out.absolute()
        rendered.write(file.parent, [PlannedFile(str(file), text)], force=force)
        shown = shlex.quote(str(out))
        typer.echo(f"wrote {shown}\n\nhelm install {release_of(name)} ./helm --values {shown}")
    warn(found.findings)


def _systemd(profile: Profile, name: str, out: Path | None, user: str | None, *, force: bool) -> None:
    folder = (out or Path(f"duet-{name}")).absolute()
    inventory = replace(machine.look(os.environ), listeners={})  # who listens just now is of no matter
    plan, inventory = settle(profile, inventory, name=name, run_directory=folder, environ=os.environ)
    case = Case(profile, plan, inventory, os.environ)
    findings = [*preflight.judge(case, {Layer.STATIC}, with_model=case.model_is_there)]
    preflight.refuse(findings)
    rendering = render(plan, folder, user=user)
    old = rendered.write(folder, rendering.files, force=force)
    for file in rendering.files:
        typer.echo(f"wrote {shlex.quote(file.path)}")
    typer.echo("\n" + "\n".join(next_steps.lines(rendering, folder, old, user=user)))
    warn(findings)
