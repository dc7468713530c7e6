"""The verbs that compare two pools on live traffic."""

import sys
import time
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from launcher.ab import running, text
from launcher.ab.request import USUAL, AbRequest
from launcher.commands.options import Output, OutputOption, RunDirectoryOption
from launcher.commands.running import NOT_HEALTHY
from launcher.local.run_directory import RunDirectory
from launcher.measure.redacted import redacted
from launcher.tables import print_table
from proxy.experiment.answer import ExperimentAnswer
from proxy.pools import MAIN
from proxy.split import Guards, SplitBy

_EVERY = 2.0
"""Seconds between two looks of ``--watch``."""

app = typer.Typer(no_args_is_help=True, help="Compare two pools on live traffic; the result may be read at any time.")


@app.command("start")
def start(
    run_dir: RunDirectoryOption,
    b: Annotated[str, typer.Option("--b", metavar="POOL", help="The pool that is tried.")],
    a: Annotated[str, typer.Option("--a", metavar="POOL", help="The pool that it is compared with.")] = MAIN,
    share: Annotated[float, typer.Option("--share", min=0.1, max=100, help="Percent for B.")] = 10.0,
    by: Annotated[SplitBy, typer.Option("--by", help="What stays with one pool.")] = SplitBy.SESSION,
    shadow: Annotated[bool, typer.Option("--shadow", help="B gets copies; A answers all clients.")] = False,
    ttft: Annotated[float | None, typer.Option("--ttft", min=0.001, help="Objective; else the profile's.")] = None,
    tpot: Annotated[float | None, typer.Option("--tpot", min=0.0001, help="Objective; else the profile's.")] = None,
    margin: Annotated[
        float, typer.Option("--margin", min=0.001, max=0.5, help="Smaller differences do not matter.")
    ] = USUAL.margin,
    more_errors: Annotated[
        float, typer.Option("--guard-errors", min=0.001, max=0.999, help="So much more may fail; beyond, it ends.")
    ] = USUAL.guards.errors,
    slower: Annotated[
        float, typer.Option("--guard-ttft", min=1.01, help="So many times A's may TTFT be; beyond, it ends.")
    ] = USUAL.guards.ttft,
) -> None:
    """Begin an experiment on the running deployment; returns when requests are divided."""
    if not shadow and share >= 100:
        raise typer.BadParameter("--share 100 leaves nothing to compare with: give less, or --shadow")
    request = AbRequest(b, a, share, by, shadow, ttft, tpot, margin, Guards(more_errors, slower))
    split = running.start(RunDirectory(run_dir.absolute()), request, redacted(["launcher", *sys.argv[1:]]))
    typer.echo(text.headline(split))
    typer.echo("`launcher ab status` may be read at any time; `launcher ab stop` ends it and keeps the report")


@app.command("status")
def status(
    run_dir: RunDirectoryOption,
    output: OutputOption = Output.TEXT,
    watch: Annotated[bool, typer.Option("--watch", help="Again and again, on a terminal, until Ctrl+C.")] = False,
) -> None:
    """What the experiment shows so far; exit code 1 if a guard has ended it."""
    directory = RunDirectory(run_dir.absolute())
    if watch and output is Output.JSON:
        raise typer.BadParameter("--watch is for people: ask for JSON without it, as often as you like")
    if watch and Console().is_terminal:
        _watch(directory)
        return
    answer = running.look(directory)
    if output is Output.JSON:
        typer.echo(running.to_json(answer))
    else:
        _show(answer, directory)
    raise typer.Exit(0 if answer.ended is None else NOT_HEALTHY)


@app.command("stop")
def stop(
    run_dir: RunDirectoryOption,
    output: OutputOption = Output.TEXT,
    promote: Annotated[bool, typer.Option("--promote", help="Say how B gets all requests for good.")] = False,
) -> None:
    """End the experiment, and keep its report; or take away what else divides the requests."""
    directory = RunDirectory(run_dir.absolute())
    report, file = running.stop(directory)
    if output is Output.JSON:
        typer.echo(running.to_json(report))
    else:
        _show(report.shown, directory)
        typer.echo(f"ended; the report is {file}" if file is not None else "it was taken away: no request is divided")
    for line in text.promotion(report.shown) if promote else ():
        typer.echo(line, err=output is Output.JSON)


def _show(answer: ExperimentAnswer, directory: RunDirectory) -> None:
    if answer.split is None:
        typer.echo(f"no experiment runs; reports of earlier ones are in {running.reports(directory)}")
        return
    typer.echo(text.headline(answer.split))
    for table in _tables(answer):
        print_table(table)
    for line in text.lines(answer):
        typer.echo(line)


def _tables(answer: ExperimentAnswer) -> list[Table]:
    return [text.arms(answer), text.metrics(answer)] if answer.metrics else []


def _watch(directory: RunDirectory) -> None:
    with suppress(KeyboardInterrupt), Live(console=Console(highlight=False), auto_refresh=False) as live:
        while True:  # Ctrl+C is how one leaves it
            answer = running.look(directory)
            if answer.split is None:
                live.update(Text("no experiment runs"), refresh=True)
            else:
                told = "\n".join(text.lines(answer))
                live.update(Group(Text(text.headline(answer.split)), *_tables(answer), Text(told)), refresh=True)
            time.sleep(_EVERY)
