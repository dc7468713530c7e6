"""The verb that compares two deployments."""

import asyncio
import os
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from launcher import loader, machine
from launcher.commands.bench import KeyOption, WorkloadOption
from launcher.commands.options import Output, OutputOption, SetOption, address, bearer, name_of
from launcher.errors import GateError, MeasureError
from launcher.measure import packages
from launcher.measure.redacted import redacted
from launcher.measure.served import is_url
from launcher.screen import Screen
from launcher.tables import new_table, print_table

if TYPE_CHECKING:
    from launcher.measure.compare_asked import Compared, Served
    from launcher.measure.figures_shape import Objectives
    from launcher.measure.load import Load


def compare(
    a: Annotated[str | None, typer.Argument(metavar="A", help="What is compared with: a profile or a URL.")] = None,
    b: Annotated[str | None, typer.Argument(metavar="B", help="What is judged; without it: A itself.")] = None,
    aggregated: Annotated[
        bool, typer.Option("--aggregated", help="Judge A, with prefill and decode, against aggregated instances.")
    ] = False,
    workload: WorkloadOption = "chat",
    overrides: SetOption = None,
    set_a: Annotated[list[str] | None, typer.Option("--set-a", metavar="KEY.PATH=VALUE", help="Of A only.")] = None,
    set_b: Annotated[list[str] | None, typer.Option("--set-b", metavar="KEY.PATH=VALUE", help="Of B only.")] = None,
    pairs: Annotated[int, typer.Option("--pairs", min=1, max=100, help="Of blocks: A B, B A, A B...")] = 4,
    concurrency: Annotated[int | None, typer.Option("--concurrency", min=1, max=4096, help="Default: 4.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", min=0.001, help="Requests a second, at random.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=1.0, help="Of a block.")] = 30.0,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    ttft: Annotated[float | None, typer.Option("--ttft", min=0.001, help="Objective in seconds.")] = None,
    tpot: Annotated[float | None, typer.Option("--tpot", min=0.0001, help="Objective in seconds.")] = None,
    margin: Annotated[float, typer.Option("--margin", min=0.001, max=1.0, help="Share that is no difference.")] = 0.05,
    key: KeyOption = None,
    model_name: Annotated[str | None, typer.Option("--model-name", help="Of several that a URL serves.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The folder for the report, and for logs.")] = None,
    again: Annotated[Path | None, typer.Option("--again", help="Compare as this report.json says.")] = None,
    gate: Annotated[bool, typer.Option("--gate", help="Exit code 8 when B is worse in anything.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Measure two profiles or URLs by turns with the same requests, and say whether B is better, worse or neither."""
    packages.needed()
    bearer(key)
    from launcher.measure import compare_run
    from launcher.measure.compare_asked import Asked
    from launcher.measure.compare_report import told
    from launcher.measure.compare_shape import Verdict
    from launcher.measure.workload_file import load as load_workload

    if again is not None:
        asked, work = told.again(again.read_bytes(), str(again))
    elif a is None:
        raise typer.BadParameter("name A, and B or --aggregated or --set-b; or --again FILE", param_hint="A")
    else:
        one, other = _sides(a, b, aggregated, overrides or [], set_a or [], set_b or [])
        asked = Asked(
            a=one,
            b=other,
            load=_load(concurrency, rate),
            pairs=pairs,
            seconds=seconds,
            seed=seed,
            objectives=_objectives(one, other, ttft, tpot),
            margin=margin,
            model=model_name,
        )
        work = load_workload(workload)
    folder = out or Path(f"compare-{_plain(asked.a.name)}-{_plain(asked.b.name)}-{datetime.now():%Y%m%d-%H%M%S}")
    screen = Screen(Console(stderr=True), "compare")
    try:
        command = redacted(["launcher", *sys.argv[1:]])
        found = asyncio.run(compare_run.run(asked, work, folder, command, screen.progress, key=key))
    finally:
        screen.close()
    try:
        (folder / "report.json").write_text(told.document(found), "utf-8")
        (folder / "report.html").write_text(told.html(found), "utf-8")
    except OSError as exc:
        raise MeasureError(f"cannot write the report to {folder}: {exc.strerror}; choose another with --out") from exc
    _show(found, folder, output)
    if gate and found.comparison.verdict in (Verdict.WORSE, Verdict.TRADED):
        raise GateError(f"{asked.b.name} is {found.comparison.verdict}: see {folder / 'report.html'}")


def _sides(
    a: str, b: str | None, aggregated: bool, both: list[str], of_a: list[str], of_b: list[str]
) -> "tuple[Served, Served]":
    from launcher.measure.compare_asked import Served
    from launcher.measure.equal_hardware import aggregated as derive

    if aggregated and (b is not None or is_url(a)):
        raise typer.BadParameter("it takes one profile, and makes the other side itself", param_hint="--aggregated")
    if aggregated:
        derived = derive(loader.load(a, [*both, *of_b]), machine.look(os.environ).cores)
        name = name_of(a)
        mine = Served(f"{name}, aggregated", a, (*both, *of_a, *derived.overrides), derived.said)
        return mine, Served(name, a, (*both, *of_b))
    if b is None and not (of_a or of_b):
        raise typer.BadParameter("name B, or what is different by --set-a or --set-b, or --aggregated", param_hint="B")
    sides = [_side(each, [*both, *own]) for each, own in ((a, of_a), (b or a, of_b))]
    if sides[0].name == sides[1].name:
        sides = [
            Served(f"{each.name} ({which}{': ' + ' '.join(own) if own else ''})", each.reference, each.overrides)
            for each, which, own in zip(sides, "AB", (of_a, of_b), strict=True)
        ]
    return sides[0], sides[1]


def _side(reference: str, overrides: list[str]) -> "Served":
    from launcher.measure.compare_asked import Served

    if is_url(reference):
        if overrides:
            raise typer.BadParameter(f"nothing can be set of {reference}, which runs already", param_hint="--set")
        return Served(reference, address(reference, "a server's"))
    loader.load(reference, overrides)  # what is faulty is said before anything starts
    return Served(name_of(reference), reference, tuple(overrides))


def _load(concurrency: int | None, rate: float | None) -> "Load":
    from launcher.measure.load import Arrivals, Closed, Open

    if concurrency is not None and rate is not None:
        raise typer.BadParameter("give either --concurrency (closed loop) or --rate (open loop)", param_hint="--rate")
    return Closed(concurrency or 4) if rate is None else Open(Arrivals.POISSON, rate)


def _objectives(a: "Served", b: "Served", ttft: float | None, tpot: float | None) -> "Objectives":
    """Those given, else those that a profile says itself, A's first."""
    from launcher.measure.figures_shape import Objectives

    known: dict[str, float | None] = {}
    for side in (b, a):
        if not is_url(side.reference):
            own = loader.load(side.reference, side.overrides).objectives
            known |= {name: getattr(own, name) for name in own.model_fields_set}
    return Objectives(ttft if ttft is not None else known.get("ttft"), tpot if tpot is not None else known.get("tpot"))


def _show(found: "Compared", folder: Path, output: Output) -> None:
    from launcher.measure.compare_report import rows, told

    if output is Output.JSON:
        typer.echo(told.document(found), nl=False)
        return
    for columns, each in ((rows.BLOCK_COLUMNS, rows.blocks(found)), (rows.EFFECT_COLUMNS, rows.effects(found))):
        table = new_table(*columns)
        for row in each:
            table.add_row(*row)
        print_table(table)
        typer.echo()
    for note in found.comparison.notes:
        typer.echo(f"note: {note}")
    typer.echo(found.comparison.sentence)
    typer.echo(f"Report: {folder / 'report.html'}")


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name.partition("://")[2] or name).strip("-")[:40]
