"""The verb that names what is wrong with a running deployment."""

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from launcher.commands.options import Output, OutputOption, RunDirectoryOption, address, bearer
from launcher.commands.running import NOT_HEALTHY
from launcher.doctor import report, runbook
from launcher.doctor.examine import examine
from launcher.doctor.look import look, look_at_proxy
from launcher.local.run_directory import RunDirectory


def diagnose(
    run_dir: RunDirectoryOption,
    window: Annotated[
        float, typer.Option("--window", min=0, max=3600, help="Seconds between two looks at the metrics.")
    ] = 10.0,
    proxy: Annotated[
        str | None,
        typer.Option("--proxy", metavar="URL", help="Look only at what this proxy tells, e.g. of another machine."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", envvar="DUET_OPERATOR_KEY", help="Of an operator (proxy.admin_keys), for --proxy."),
    ] = None,
    output: OutputOption = Output.TEXT,
    print_runbook: Annotated[
        bool, typer.Option("--runbook", help="Print all problems that it knows, in Markdown, and look at nothing.")
    ] = False,
) -> None:
    """What is wrong with the running deployment: symptom, evidence, cause, fix; exit code 1 if something is."""
    if print_runbook:
        typer.echo(runbook.page(), nl=False)
        return
    if proxy is not None:
        seen = asyncio.run(look_at_proxy(address(proxy, "the proxy's"), window, bearer(key)))
    else:
        with Console(stderr=True).status("") as status:
            seen = asyncio.run(look(RunDirectory(run_dir.absolute()), window, status.update))
    findings = examine(seen)
    if output is Output.JSON:
        typer.echo(report.as_json(findings, seen))
    else:
        report.text(Console(highlight=False), findings, seen)
    raise typer.Exit(0 if report.is_healthy(findings, seen) else NOT_HEALTHY)
