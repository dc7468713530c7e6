"""The verb that starts instances of a running deployment anew."""

from typing import Annotated

import typer

from launcher.commands.options import InstancesArgument, RunDirectoryOption
from launcher.commands.running import NOT_HEALTHY
from launcher.local.restart import restart
from launcher.local.run_directory import RunDirectory


def restart_instances(
    instances: InstancesArgument,
    run_dir: RunDirectoryOption,
    drain_first: Annotated[
        bool, typer.Option("--drain/--no-drain", help="First wait for requests, and for KV to be taken.")
    ] = True,
    within: Annotated[float, typer.Option("--within", min=0, help="Seconds to wait for that at most.")] = 60.0,
) -> None:
    """Drain instances, end and start them again, one after the other; exit code 1 if one is not drained in time."""
    directory = RunDirectory(run_dir.absolute())
    if not restart(directory, instances, drain_first=drain_first, within=within, tell=typer.echo):
        typer.echo(f"not drained after {within:g} s: it runs on and gets requests again, try later", err=True)
        raise typer.Exit(NOT_HEALTHY)
