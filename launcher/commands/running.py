"""Verbs for a deployment that runs."""

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from launcher import show
from launcher.commands.cluster import ContextOption, NamespaceOption, show_cluster
from launcher.commands.options import InstancesArgument, Output, OutputOption, RunDirectoryOption
from launcher.errors import ProofError, RunDirectoryError
from launcher.local import drain, logs, pairs, status, stop
from launcher.local.run_directory import RunDirectory

NOT_HEALTHY = 1


def show_status(
    run_dir: RunDirectoryOption,
    output: OutputOption = Output.TEXT,
    of_pairs: Annotated[bool, typer.Option("--pairs", help="How hand-overs of KV went, instead.")] = False,
    in_cluster: Annotated[bool, typer.Option("--cluster", help="What runs in a Kubernetes cluster, instead.")] = False,
    namespace: NamespaceOption = None,
    context: ContextOption = None,
    release: Annotated[
        str | None, typer.Option("--release", show_default="all", help="Of a cluster: this one only.")
    ] = None,
) -> None:
    """What runs, and whether it answers; exit code 1 if something does not."""
    if not in_cluster and (namespace or context or release):
        raise typer.BadParameter("--namespace, --context and --release are of a --cluster")
    if in_cluster:
        is_healthy = show_cluster(namespace, context, release, as_json=output is Output.JSON)
        raise typer.Exit(0 if is_healthy else NOT_HEALTHY)
    if of_pairs:
        found = pairs.gather(RunDirectory(run_dir.absolute()))
        show.pairs(found, as_json=output is Output.JSON)
        raise typer.Exit(0 if found.works else NOT_HEALTHY)
    report = asyncio.run(status.gather(RunDirectory(run_dir.absolute())))
    show.status(report, as_json=output is Output.JSON)
    raise typer.Exit(0 if report.healthy else NOT_HEALTHY)


def prove(run_dir: RunDirectoryOption, output: OutputOption = Output.TEXT) -> None:
    """Send a canary through every pair of the running deployment; exit code 8 if one does not come through."""
    with Console(stderr=True).status("Sending a canary through every pair"):
        found = pairs.prove(RunDirectory(run_dir.absolute()))
    if not found.pairs:
        raise RunDirectoryError("there is nothing to prove: the deployment has no prefill and decode instances")
    show.proofs(found, as_json=output is Output.JSON)
    raise typer.Exit(0 if found.proven else ProofError.exit_code)


def show_logs(
    run_dir: RunDirectoryOption,
    instance: Annotated[str | None, typer.Argument(metavar="[INSTANCE]", help="E.g. decode-0; default: all.")] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with new lines until Ctrl+C.")] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many of the last lines.")] = 50,
    output: OutputOption = Output.TEXT,
) -> None:
    """The instances' logs, each line with its instance."""
    for line in logs.read(RunDirectory(run_dir.absolute()), instance, lines, follow=follow):
        show.log_line(line, as_json=output is Output.JSON)


def down(run_dir: RunDirectoryOption) -> None:
    """Stop the deployment and wait until nothing of it runs."""
    directory = RunDirectory(run_dir.absolute())
    was_running = stop.stop(directory)
    typer.echo("stopped" if was_running else f"nothing runs in {directory.path}")


def drain_instances(
    instances: InstancesArgument,
    run_dir: RunDirectoryOption,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="For what they have, and for KV to be taken.")] = True,
    within: Annotated[float, typer.Option("--within", min=0, help="Seconds to wait at most.")] = 60.0,
) -> None:
    """Give instances no new requests; wait for those they have and for their KV; exit code 1 if that takes longer."""
    directory = RunDirectory(run_dir.absolute())
    if not wait:
        drain.take_out(directory, instances)
        typer.echo("no new requests from now on")
        return
    if not drain.drain(directory, instances, within=within, tell=typer.echo):
        typer.echo(f"not drained after {within:g} s; they get nothing new (`launcher resume` undoes that)", err=True)
        raise typer.Exit(NOT_HEALTHY)
    typer.echo("drained")


def resume_instances(instances: InstancesArgument, run_dir: RunDirectoryOption) -> None:
    """Give drained instances requests again."""
    drain.resume(RunDirectory(run_dir.absolute()), instances)
    typer.echo("serving again")
