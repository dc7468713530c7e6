"""Verbs that watch a running deployment and change it when that pays."""

import asyncio
import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from prometheus_client import CollectorRegistry, start_http_server

from launcher.commands.options import RunDirectoryOption
from launcher.errors import MeasureError, RunDirectoryError
from launcher.local.run_directory import RunDirectory
from launcher.measure import packages
from launcher.operate.speculation.controller import Options
from launcher.operate.speculation.kind import controller
from launcher.operate.speculation.knowledge import Knowledge
from launcher.operate.speculation.metrics import Metrics
from launcher.operate.speculation.policy import Policy
from launcher.operate.speculation.pools import look
from launcher.operate.speculation.tuned import knowledge
from launcher.speculation.evidence import Evidence
from launcher.speculation.evidence_file import from_data
from proxy.pools import by_name

app = typer.Typer(no_args_is_help=True, help="Watch a running deployment, and change it when measurements say so.")
_DEFAULT = Policy()


@app.callback()
def operate() -> None:
    """Watch a running deployment, and change it when measurements say so."""


@app.command("speculation")
def speculation(
    run_dir: RunDirectoryOption,
    evidence: Annotated[
        Path | None,
        typer.Option("--evidence", help="Of `launcher tune speculation`: how fast tokens come without speculation."),
    ] = None,
    pool: Annotated[
        str | None, typer.Option("--pool", help="Whose engines, where several pools speculate; `main` for the first.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and tell, and do nothing.")] = False,
    window: Annotated[float, typer.Option("--window", min=1, help="Seconds of one look.")] = _DEFAULT.window,
    confirm: Annotated[
        int, typer.Option("--confirm", min=2, help="Windows with enough traffic before anything is decided.")
    ] = _DEFAULT.confirm,
    least_requests: Annotated[
        float, typer.Option("--least-requests", min=1, help="In a window, for it to count.")
    ] = _DEFAULT.least_requests,
    break_even: Annotated[
        float, typer.Option("--break-even", min=0, max=1, help="Acceptance below which it is off, if no gain is shown.")
    ] = _DEFAULT.break_even,
    rest: Annotated[float, typer.Option("--rest", min=0, help="Seconds between two changes.")] = _DEFAULT.rest,
    retry: Annotated[
        float, typer.Option("--retry", min=1, help="Seconds off before it is tried again; then twice as long.")
    ] = _DEFAULT.retry,
    drain_within: Annotated[
        float, typer.Option("--drain-within", min=0, help="Seconds an engine's requests get to end before a restart.")
    ] = 120.0,
    allow_downtime: Annotated[
        bool, typer.Option("--allow-downtime", help="Restart an engine also when nobody else answers meanwhile.")
    ] = False,
    metrics_port: Annotated[
        int | None, typer.Option("--metrics-port", min=1, max=65535, help="Tell Prometheus on 127.0.0.1.")
    ] = None,
) -> None:
    """Keep, lower, raise or switch off speculation by the tokens a second it gains; Ctrl+C ends the watching.

    An engine is drained, started with its new schedule and proven before the next one: no request is lost.
    """
    packages.needed()
    for name, value in (("window", window), ("rest", rest), ("retry", retry), ("drain-within", drain_within)):
        if not math.isfinite(value):
            raise typer.BadParameter(f"--{name} {value:g} has no end: give a finite number")
    directory = RunDirectory(run_dir.absolute())
    policy = Policy(
        *(window, confirm),
        most=max(_DEFAULT.most, confirm),
        least_requests=least_requests,
        break_even=break_even,
        rest=rest,
        retry=retry,
    )
    pools = look(directory, pool)
    registry = CollectorRegistry()
    options = Options(policy, dry_run, allow_downtime, drain_within)
    known = Knowledge() if evidence is None else knowledge(_read(evidence), len(pools.engines))
    working = controller(directory, pools, known, options, Metrics(registry, by_name(pools.speculating)), typer.echo)
    if metrics_port is not None:
        try:
            start_http_server(metrics_port, "127.0.0.1", registry)
        except OSError as exc:
            raise RunDirectoryError(
                f"cannot listen on port {metrics_port} ({exc.strerror}): choose another --metrics-port"
            ) from exc
    with nullcontext() if dry_run else directory.alone(f"operate speculation --pool {by_name(pools.speculating)}"):
        asyncio.run(working.run())


def _read(file: Path) -> Evidence:
    try:
        return from_data(json.loads(file.read_bytes()))
    except OSError as exc:
        raise MeasureError(f"cannot read {file}: {exc.strerror}") from exc
    except ValueError as exc:
        raise MeasureError(f"{file} is no evidence of `launcher tune speculation`: {exc}") from exc
