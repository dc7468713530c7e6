"""The verbs that tune a profile by measuring it."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import platformdirs
import typer
from rich.console import Console

from launcher.commands.bench import KeyOption
from launcher.commands.options import ModelOption, SetOption, bearer, name_of, with_model
from launcher.measure.redacted import redacted
from launcher.screen import Screen
from launcher.tables import new_table, print_table

if TYPE_CHECKING:
    from launcher.speculation.session import Tuned

app = typer.Typer(no_args_is_help=True, help="Tune a profile by measuring it with your workload.")


@app.callback()
def _verbs() -> None:
    """Keeps ``speculation`` a verb although it is the only one."""


@app.command("speculation")
def speculation(
    profile: Annotated[
        str | None, typer.Argument(metavar="PROFILE", help="A shipped name (see `list`) or a path.")
    ] = None,
    workload: Annotated[str, typer.Option("--workload", help="Shipped name, YAML, or JSON lines of yours.")] = "chat",
    k: Annotated[str, typer.Option("--k", help="Tokens to draft, apart from 0, e.g. 2,4,8.")] = "1,2,3,4,5,6,7,8",
    concurrency: Annotated[str, typer.Option("--concurrency", help="Requests at once.")] = "1,4,8",
    method: Annotated[list[str] | None, typer.Option("--method", help="Only this one; repeat for several.")] = None,
    temperature: Annotated[
        str | None, typer.Option("--temperature", help="Instead of the workload's, each as often, e.g. 0,0.8.")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=1.0, help="For each load of each start.")] = 30.0,
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=10, help="At most, while a load is undecided.")] = 3,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    ttft: Annotated[float | None, typer.Option("--ttft", min=0.001, help="Objective in seconds.")] = None,
    tpot: Annotated[float | None, typer.Option("--tpot", min=0.0001, help="Objective in seconds.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write a profile that extends PROFILE.")] = None,
    work: Annotated[Path | None, typer.Option("--work", help="Where it goes on after it was ended.")] = None,
    again: Annotated[Path | None, typer.Option("--again", help="Measure what this evidence's file did.")] = None,
    key: KeyOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Measure, show the difference, write nothing.")] = False,
    overrides: SetOption = None,
    model: ModelOption = None,
) -> None:
    """Measure what speculation gives at each load; write the best schedule into PROFILE, or none if it brings none."""
    from launcher.measure.figures_shape import Objectives
    from launcher.measure.packages import needed
    from launcher.speculation import session
    from launcher.speculation.report import page
    from launcher.speculation.save import difference, save

    needed()
    bearer(key)
    if again is not None:
        asked, requests = session.again(again)
    elif profile is not None:
        asked = session.Asked(
            profile=profile,
            overrides=tuple(with_model(overrides, model)),
            workload=workload,
            ks=tuple(each for each in _numbers(k, "--k") if each),
            concurrencies=tuple(each for each in _numbers(concurrency, "--concurrency") if each),
            methods=tuple(method or ()),
            temperatures=_temperatures(temperature),
            seconds=seconds,
            seed=seed,
            rounds=rounds,
            objectives=Objectives(ttft, tpot) if ttft is not None or tpot is not None else None,
        )
        requests = session.work_of(asked)
    else:
        raise typer.BadParameter("name a profile, or --again FILE", param_hint="PROFILE")
    console = Console(stderr=True)
    folder = work or Path(platformdirs.user_state_dir("duet")) / "tuning" / name_of(asked.profile)
    screen = Screen(console, "tune")

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    say(f"Work folder: {folder} (run the same command again to go on after an end)")
    try:
        tuned = asyncio.run(
            session.session(asked, requests, folder, out, screen.progress, say, redacted(["launcher", *sys.argv[1:]]))
        )
    finally:
        screen.close()
    _show(tuned)
    report = folder / "report.html"
    report.write_text(page.render(tuned.evidence, tuned.context), "utf-8")
    typer.echo(f"Report: {report}")
    for line in difference(tuned.drafted):
        typer.echo(line)
    if asked.overrides:
        typer.echo(f"note: measured with --set {' '.join(asked.overrides)}, which is not written into the profile")
    if dry_run:
        typer.echo("Nothing is written (--dry-run).")
        return
    evidence, copy = save(tuned.drafted, tuned.evidence, tuned.context)
    session.finish(folder)
    typer.echo(f"Written: {tuned.drafted.file}" + (f"; as it was: {copy}" if copy else ""))
    typer.echo(f"Evidence: {evidence}")


def _show(tuned: "Tuned") -> None:
    from launcher.speculation.report import rows

    table = new_table(*rows.CHOICE_COLUMNS)
    for row in rows.choices(tuned.evidence):
        table.add_row(*row)
    points = new_table(*rows.POINT_COLUMNS)
    for row in rows.points(tuned.evidence):
        points.add_row(*row)
    print_table(points)
    typer.echo()
    print_table(table)
    for note in tuned.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"\n{tuned.evidence.verdict}")


def _numbers(text: str, option: str) -> list[int]:
    """E.g. ``1,4,8`` or ``0..8``."""
    try:
        first, dots, last = text.partition("..")
        found = range(int(first), int(last) + 1) if dots else (int(each) for each in text.split(","))
        numbers = sorted({*found})
    except ValueError as exc:
        raise typer.BadParameter(f"write numbers with commas, e.g. 1,4,8, not {text!r}", param_hint=option) from exc
    if not numbers or numbers[0] < 0:
        raise typer.BadParameter(f"write numbers from 0 on, not {text!r}", param_hint=option)
    return numbers


def _temperatures(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        found = tuple(sorted({float(each) for each in text.split(",")}))
    except ValueError as exc:
        raise typer.BadParameter(f"write numbers with commas, e.g. 0,0.8, not {text!r}") from exc
    if not all(0 <= each <= 2 for each in found):
        raise typer.BadParameter(f"temperatures are from 0 to 2, not {text!r}")
    return found
