"""The verbs that quantize a model, and judge one that was."""

import os
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from launcher import machine
from launcher.commands.run_by_default import RunByDefault
from launcher.errors import GateError
from launcher.quantize import setup
from launcher.quantize.calibration import USUAL_RECORDS
from launcher.quantize.drift import Level
from launcher.quantize.gate.shape import Limits, Verdict
from launcher.quantize.recipe import Algorithm
from launcher.quantize.request import Request
from launcher.quantize.scheme import Scheme
from launcher.screen import Screen


class _Group(RunByDefault):
    """``launcher quantize --setup`` means ``launcher quantize setup``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # of click's own type
        """Put the verb in."""
        return super().parse_args(ctx, ["setup", *args[1:]] if args[:1] == ["--setup"] else args)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    help="Quantize a model, and publish it only when it is shown to be as good as the original.",
)


class _Asked(StrEnum):
    """What ``--scheme`` may say."""

    INT8 = "int8"
    INT4 = "int4"
    FP8 = "fp8"
    AUTO = "auto"


Python = Annotated[
    Path | None,
    typer.Option("--python", envvar=setup.VARIABLE, help="An interpreter with llm-compressor, instead of setup's."),
]


@app.command("setup")
def make_interpreter() -> None:
    """Make the interpreter of its own in which quantization works, once."""
    python = setup.make(machine.look(os.environ).cache, typer.echo)
    typer.echo(f"{python} is ready")


@app.command("run")
def run(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Folder, hub id in the cache, or a bundled model.")],
    calibration: Annotated[Path, typer.Option("--calibration", help="Your traffic: JSON lines of messages or text.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to publish; it must not exist.")],
    scheme: Annotated[_Asked, typer.Option("--scheme", help="auto: what fits the hardware.")] = _Asked.AUTO,
    task: Annotated[Path | None, typer.Option("--task", help="A labelled task of yours, JSON lines.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Judge it as this profile would serve it.")] = None,
    target: Annotated[str | None, typer.Option("--target", help="Hardware it is for: cpu, or a GPU's name.")] = None,
    tensor_parallel: Annotated[int | None, typer.Option("--tensor-parallel", min=1, max=64)] = None,
    records: Annotated[int, typer.Option("--records", min=8, help="To calibrate with, at most 1,024.")] = USUAL_RECORDS,
    held_out: Annotated[int, typer.Option("--held-out", min=8, max=1024, help="To judge with, never used else.")] = 64,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=16, max=32768, help="Of a record.")] = 2048,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same bytes.")] = 0,
    fast: Annotated[
        bool, typer.Option("--fast", help="Try rounding to nearest first, which needs no calibration.")
    ] = False,
    algorithm: Annotated[Algorithm | None, typer.Option("--algorithm", help="Instead of the scheme's own.")] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="NAME|re:EXPR", help="Layers to leave in 16 bits.")
    ] = None,
    attempts: Annotated[int, typer.Option("--attempts", min=1, max=5, help="At most, while it fails.")] = 3,
    max_loss: Annotated[float, typer.Option("--max-loss", min=0.0, max=100.0, help="Points of accuracy.")] = 1.0,
    max_kl: Annotated[float, typer.Option("--max-kl", min=0.0, help="Nats a token.")] = 0.1,
    min_agreement: Annotated[float, typer.Option("--min-agreement", min=0.0, max=1.0)] = 0.85,
    floor: Annotated[float, typer.Option("--floor", min=0.0, max=1.0, help="Accuracy the original must have.")] = 0.1,
    force: Annotated[bool, typer.Option("--force", help="Go on with too few records.")] = False,
    publish_anyway: Annotated[bool, typer.Option("--publish-anyway", help="Publish what did not pass.")] = False,
    python: Python = None,
) -> None:
    """Calibrate, quantize, and judge MODEL against the original, both served by vLLM; publish it when it passes."""
    from launcher.quantize.inputs import packages
    from launcher.quantize.run import quantize

    packages()
    inventory = machine.look(os.environ)
    interpreter = setup.worker_python(python, inventory.cache, os.environ)
    request = Request(
        model=model,
        calibration=calibration,
        out=out.absolute(),
        scheme=None if scheme is _Asked.AUTO else Scheme(scheme.value),
        task=task,
        profile=profile,
        target=target,
        tensor_parallel=tensor_parallel,
        records=records,
        held_out=held_out,
        max_tokens=max_tokens,
        seed=seed,
        fast=fast,
        algorithm=algorithm,
        ignore=tuple(ignore or ()),
        attempts=attempts,
        force=force,
        publish_anyway=publish_anyway,
        limits=Limits(loss=max_loss, kl=max_kl, agreement=min_agreement, floor=floor),
        command=shlex.join(["launcher", *sys.argv[1:]]),
    )
    screen = Screen(Console(stderr=True), "quantize")
    try:
        outcome = quantize(request, interpreter, inventory, os.environ, screen)
    finally:
        screen.close()
    typer.echo(f"\n{outcome.verdict.value.upper()}: {outcome.headline}")
    last = outcome.attempts[-1]
    for reason in (last.judgement.reasons if last.judgement else ())[1:]:
        typer.echo(f"  {reason}")
    if last.speed is not None:
        typer.echo(f"  {last.speed.reason}")
    typer.echo(f"Report: {out.absolute()}.report/report.html")
    if outcome.published:
        typer.echo(f"Published{' although it did not pass' if outcome.forced else ''}: {outcome.published}")
    for step in outcome.next_steps:
        typer.echo(f"Next: {step}")
    if outcome.verdict is not Verdict.PASS and not outcome.forced:
        raise GateError(f"{out.absolute()} was not published: {outcome.verdict.value}")


@app.command("check")
def check_live(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A checkpoint that `quantize` has published.")],
    live: Annotated[Path, typer.Option("--live", help="Recent traffic: JSON lines of messages or text.")],
    served: Annotated[bool, typer.Option("--served", help="Serve both models, and compare answers, too.")] = False,
    profile: Annotated[str | None, typer.Option("--profile", help="Serve them as this profile would.")] = None,
    metrics_file: Annotated[
        Path | None, typer.Option("--metrics-file", help="For the node exporter's textfile collector.")
    ] = None,
    python: Python = None,
) -> None:
    """Is production still like what DIR was calibrated with, and are its answers still like the original's?"""
    from launcher.quantize.check import check
    from launcher.quantize.inputs import packages, readable
    from launcher.quantize.recheck import counting, judging

    if profile is not None and not served:
        raise typer.BadParameter("it does nothing without --served", param_hint="--profile")
    packages()
    readable(live, "--live")
    inventory = machine.look(os.environ)
    interpreter = setup.worker_python(python, inventory.cache, os.environ)
    screen = Screen(Console(stderr=True), "quantize")
    try:
        found = check(
            folder,
            live,
            count=counting(interpreter, os.environ, screen),
            judge=judging(folder, profile, inventory, os.environ, screen) if served else None,
            metrics_file=metrics_file,
        )
    finally:
        screen.close()
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"{found.level.name}: {found.reasons[0] if found.reasons else 'nothing has changed'}")
    for reason in found.reasons[1:]:
        typer.echo(f"  {reason}")
    if found.level is Level.ALERT:
        raise GateError(f"{folder} does not fit production any more: quantize again with recent records")
