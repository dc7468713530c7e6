"""The verbs that measure one deployment, and that make records of traffic fit to be given away."""

import asyncio
import re
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from launcher.commands.load_options import LoadOptions, given, objectives_of, refuse_useless, settings_of
from launcher.commands.options import (
    ModelOption,
    Output,
    OutputOption,
    RunDirectoryOption,
    SetOption,
    address,
    bearer,
    with_model,
)
from launcher.commands.run_by_default import RunByDefault
from launcher.errors import MeasureError
from launcher.local.run_directory import RunDirectory
from launcher.measure import packages
from launcher.measure.bench_shape import Benched, Settings
from launcher.measure.figures_shape import Objectives
from launcher.measure.load import Arrivals
from launcher.measure.redacted import redacted
from launcher.measure.served import is_url
from launcher.measure.workload_file import Work
from launcher.measure.workload_file import load as load_workload
from launcher.screen import Screen

app = typer.Typer(
    cls=RunByDefault,
    no_args_is_help=True,
    help="Measure TTFT, time per token, throughput and goodput of a profile, a URL or what runs.",
)
KeyOption = Annotated[
    str | None, typer.Option("--key", envvar="DUET_CLIENT_KEY", help="A client's key, where the server asks for one.")
]
WorkloadOption = Annotated[
    str,
    typer.Option("--workload", help="A shipped one, a YAML file, or JSON lines of real requests."),
]


@app.command("run")
def run(
    context: typer.Context,
    run_dir: RunDirectoryOption,
    target: Annotated[
        str | None, typer.Argument(metavar="PROFILE|URL", help="Without it: what runs in the run directory.")
    ] = None,
    workload: WorkloadOption = "chat",
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, max=4096, help="Closed loop: so many clients. Default: 4.")
    ] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Open loop: so many requests a second.")] = None,
    arrivals: Annotated[Arrivals | None, typer.Option("--arrivals", help="Of an open loop; default: poisson.")] = None,
    speed: Annotated[float, typer.Option("--speed", help="Of a trace; 2 is twice as fast.")] = 1.0,
    most: Annotated[int, typer.Option("--most", min=1, help="Of an open loop: requests at once.")] = 1024,
    seconds: Annotated[float | None, typer.Option("--seconds", help="That are counted. Default: 30.")] = None,
    requests: Annotated[
        int | None, typer.Option("--requests", min=1, help="So many instead of so many seconds.")
    ] = None,
    warm_up: Annotated[float, typer.Option("--warm-up", min=0, help="Seconds before, not counted.")] = 5.0,
    ttft: Annotated[
        float | None,
        typer.Option("--ttft", min=0.001, help="Objective in seconds, for goodput. Default: the profile's."),
    ] = None,
    tpot: Annotated[float | None, typer.Option("--tpot", min=0.0001, help="The same, of each further token.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed sends the same requests.")] = 0,
    key: KeyOption = None,
    model_name: Annotated[str | None, typer.Option("--model-name", help="Of several that a URL serves.")] = None,
    overrides: SetOption = None,
    model: ModelOption = None,
    anonymise: Annotated[
        bool, typer.Option("--anonymise", help="Send, and report, real requests in made-up words.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="The folder for the report, and for logs.")] = None,
    again: Annotated[Path | None, typer.Option("--again", help="Measure as this report.json says.")] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Send a workload to a profile (started for it), a URL or what runs, and report what its clients saw."""
    packages.needed()
    from launcher.measure.report.files import check as check_folder

    bearer(key)  # one that can be none is refused before anything starts
    written, chosen = given(context), with_model(overrides, model)
    digest: str | None = None
    if again is not None:
        from launcher.measure.report.document import again as read_again

        known = read_again(_read(again), str(again))
        settings, work, digest = known.settings, known.work, known.sent.digest
        target = target or known.reference
        refuse_useless(written, target, again=True)
        chosen = chosen or ([*known.overrides] if target == known.reference else [])
    else:
        refuse_useless(written, target, again=False)
        work = load_workload(workload)
        options = LoadOptions(concurrency, rate, arrivals, speed, most, seconds, requests, warm_up, seed)
        settings = settings_of(written, options, work)
        settings = replace(settings, objectives=objectives_of(target, chosen, run_dir, Objectives(ttft, tpot)))
    if anonymise:
        from launcher.measure.anonymise import without_words

        work = without_words(work)
    if target is not None and is_url(target):
        target = address(target, "a server's")
    folder = out or Path(f"bench-{_name(target)}-{datetime.now():%Y%m%d-%H%M%S}")
    check_folder(folder)
    screen = Screen(Console(stderr=True), "bench")
    try:
        benched = asyncio.run(
            _measured(target, chosen, folder, work, settings, RunDirectory(run_dir.absolute()), key, model_name, screen)
        )
    finally:
        screen.close()
    _show(benched, folder, output, digest)


@app.command("anonymise")
def make_anonymous(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Real requests, JSON lines.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; it must not exist.")],
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of requests that do not say it.")] = 128,
) -> None:
    """Replace every word by a made-up one of the same length, and equal words by equal ones."""
    from launcher.measure.anonymise import anonymise

    count = anonymise(source, target, max_tokens)
    typer.echo(f"{target}: {count:,} requests without their words; look at it before you give it away")


async def _measured(
    target: str | None,
    overrides: list[str],
    folder: Path,
    work: Work,
    settings: Settings,
    directory: RunDirectory,
    key: str | None,
    model: str | None,
    screen: Screen,
) -> Benched:
    from launcher.measure.bench import bench
    from launcher.measure.served import measured, running
    from launcher.measure.target import Target

    async def measure(found: Target) -> Benched:
        return await bench(
            found,
            work,
            settings,
            reference=target,
            overrides=overrides,
            command=redacted(["launcher", *sys.argv[1:]]),
            ours=_processes(target, directory),
            tell=screen.progress,
        )

    if target is None:
        return await measure(running(directory, key))
    return await measured(target, overrides, folder, measure, screen.progress, key=key, model=model)


def _processes(target: str | None, directory: RunDirectory) -> tuple[int, ...] | None:
    """Of the deployment, beside this one and its children; ``None``: unknown."""
    if target is None:
        return (directory.running().launcher_pid,)
    return None if is_url(target) else ()


def _show(benched: Benched, folder: Path, output: Output, digest: str | None) -> None:
    from launcher.measure.report.document import document
    from launcher.measure.report.files import write
    from launcher.measure.report.table import table

    if benched.figures.requests and benched.figures.failed == benched.figures.requests:
        example = next(iter(benched.figures.examples.values()))
        raise MeasureError(f"not one of {benched.figures.requests} requests was answered: {example}")
    write(benched, folder)
    if output is Output.JSON:
        typer.echo(document(benched), nl=False)
        return
    console = Console(highlight=False)
    for each in table(benched):
        console.print(each)
    if digest is not None and digest != benched.sent.digest:
        console.print("note: this Duet makes other requests of that workload and seed than the report's did")
    console.print(f"Report: {folder.absolute()}/report.html", soft_wrap=True, markup=False)


def _name(target: str | None) -> str:
    if target is None:
        return "running"
    return re.sub(r"[^A-Za-z0-9.]+", "-", target.partition("://")[2]) if is_url(target) else Path(target).stem


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise MeasureError(f"cannot read {file}: {exc.strerror}; name a report.json of `launcher bench`") from exc
