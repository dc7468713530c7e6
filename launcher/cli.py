"""The command line: verbs, options, and the one place where an error becomes a message and an exit code."""

import asyncio
import json
import os
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import httpx
import platformdirs
import typer
from rich.console import Console

from launcher import loader, machine, planner, preflight, show
from launcher.console import LoadReporter
from launcher.demo.session import QUESTION, DemoSession
from launcher.errors import InstanceDiedError, LauncherError, ProofError, RunDirectoryError
from launcher.local import detach, drain, logs, pairs, status, stop
from launcher.local.run_directory import RunDirectory
from launcher.plan import Plan
from launcher.up import OnceReady, up
from launcher.weights import with_weights

NOT_HEALTHY = 1
INTERRUPTED = 130


class Output(StrEnum):
    """How a reading command prints."""

    TEXT = "text"
    JSON = "json"


def _default_run_directory() -> Path:
    try:
        return Path(platformdirs.user_state_dir("duet")) / "run"
    except RuntimeError as exc:  # neither HOME nor an entry in the user database
        raise RunDirectoryError(f"{exc} Name the run directory with --run-dir") from exc


ProfileArgument = Annotated[str, typer.Argument(metavar="PROFILE", help="A shipped name (see `list`) or a path.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY.PATH=VALUE", help="Override one value of the profile.")
]
ModelOption = Annotated[Path | None, typer.Option("--model", help="Serve this Hugging Face folder instead.")]
OutputOption = Annotated[Output, typer.Option("--output", help="Text for people or JSON for programs.")]
RunDirectoryOption = Annotated[
    Path,
    typer.Option(
        "--run-dir",
        envvar="DUET_RUN_DIR",
        default_factory=_default_run_directory,
        show_default="in the user's state folder",
        help="Where a deployment keeps state and logs.",
    ),
]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Turn a profile into running vLLM engines and a proxy.",
    epilog="Exit codes: 0 success; 1 not healthy (status), not drained (drain); 2 usage; 3 profile; "
    "4 plan, preflight or run directory; 5 a process died; 6 not ready in time; 8 no proof (prove, demo); "
    "130 interrupted before it was ready.",
)


@app.command("list")
def list_profiles(output: OutputOption = Output.TEXT) -> None:
    """The shipped profiles."""
    show.profiles({name: loader.load(name) for name in loader.shipped_profiles()}, as_json=output is Output.JSON)


@app.command("plan")
def plan_profile(
    profile: ProfileArgument,
    run_dir: RunDirectoryOption,
    overrides: SetOption = None,
    model: ModelOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print exactly what `up` would run; starts nothing."""
    loaded = loader.load(profile, _overrides(overrides, model))
    inventory, name, directory = machine.look(os.environ), _name(profile), run_dir.absolute()
    drafted = planner.plan(loaded, inventory, name=name, run_directory=directory)
    inventory = with_weights(inventory, drafted, os.environ)
    settled = planner.plan(loaded, inventory, name=name, run_directory=directory)
    show.plan(settled, as_json=output is Output.JSON)
    for remark in preflight.remarks(loaded, settled):
        typer.echo(f"warning: {remark}", err=True)


@app.command("up")
def up_profile(
    profile: ProfileArgument,
    run_dir: RunDirectoryOption,
    overrides: SetOption = None,
    model: ModelOption = None,
    detached: Annotated[bool, typer.Option("--detach", help="Return once it is ready; it runs on.")] = False,
) -> None:
    """Start a deployment and keep it running until Ctrl+C."""
    settings = _overrides(overrides, model)
    directory = RunDirectory(run_dir.absolute())
    if detached:
        loader.load(profile, settings)  # a faulty profile is reported here, not in a log
        raise typer.Exit(detach.start(profile, settings, directory, Console(highlight=False)))

    async def serve(plan: Plan, client: httpx.AsyncClient) -> bool:
        show.address(console, plan)
        return True

    console = Console(highlight=False)
    raise typer.Exit(_run(profile, settings, directory, console, serve))


@app.command("demo")
def demo(
    run_dir: RunDirectoryOption,
    once: Annotated[bool, typer.Option("--once", help="Exit after the proof: 0 only if the KV cache moved.")] = False,
    question: Annotated[str, typer.Option("--question", help="What is asked.")] = QUESTION,
    overrides: SetOption = None,
    model: ModelOption = None,
) -> None:
    """Start the profile `demo`, ask one question through the pair and prove that the KV cache moved."""
    console = Console(highlight=False)
    session = DemoSession(console, question, once=once, launcher=shlex.quote(sys.argv[0]))
    settings = _overrides(overrides, model)
    raise typer.Exit(_run("demo", settings, RunDirectory(run_dir.absolute()), console, session))


@app.command("status")
def show_status(
    run_dir: RunDirectoryOption,
    output: OutputOption = Output.TEXT,
    of_pairs: Annotated[bool, typer.Option("--pairs", help="How hand-overs of KV went, instead.")] = False,
) -> None:
    """What runs, and whether it answers; exit code 1 if something does not."""
    if of_pairs:
        found = pairs.gather(RunDirectory(run_dir.absolute()))
        show.pairs(found, as_json=output is Output.JSON)
        raise typer.Exit(0 if found.works else NOT_HEALTHY)
    report = asyncio.run(status.gather(RunDirectory(run_dir.absolute())))
    show.status(report, as_json=output is Output.JSON)
    raise typer.Exit(0 if report.healthy else NOT_HEALTHY)


@app.command()
def prove(run_dir: RunDirectoryOption, output: OutputOption = Output.TEXT) -> None:
    """Send a canary through every pair of the running deployment; exit code 8 if one does not come through."""
    with Console(stderr=True).status("Sending a canary through every pair"):
        found = pairs.prove(RunDirectory(run_dir.absolute()))
    if not found.pairs:
        raise RunDirectoryError("there is nothing to prove: the deployment has no prefill and decode instances")
    show.proofs(found, as_json=output is Output.JSON)
    raise typer.Exit(0 if found.proven else ProofError.exit_code)


@app.command("logs")
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


@app.command("down")
def down(run_dir: RunDirectoryOption) -> None:
    """Stop the deployment and wait until nothing of it runs."""
    directory = RunDirectory(run_dir.absolute())
    was_running = stop.stop(directory)
    typer.echo("stopped" if was_running else f"nothing runs in {directory.path}")


InstancesArgument = Annotated[list[str], typer.Argument(metavar="INSTANCE...", help="E.g. decode-0.")]


@app.command("drain")
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


@app.command("resume")
def resume_instances(instances: InstancesArgument, run_dir: RunDirectoryOption) -> None:
    """Give drained instances requests again."""
    drain.resume(RunDirectory(run_dir.absolute()), instances)
    typer.echo("serving again")


def main() -> None:
    """Entry point of the console script; never shows a traceback for an error that is the user's to solve."""
    try:
        app()
    except InstanceDiedError as exc:
        for line in exc.log_tail:
            typer.echo(f"  | {line}", err=True)
        _fail(exc)
    except LauncherError as exc:
        _fail(exc)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as exc:  # of a file or directory that nobody below expected to fail
        _fail(RunDirectoryError(f"{exc.filename or 'output'}: {exc.strerror}"))


def _run(profile: str, settings: list[str], directory: RunDirectory, console: Console, once_ready: OnceReady) -> int:
    loaded = loader.load(profile, settings)
    reporter = LoadReporter(console)
    name = _name(profile)
    console.print(f"{name}: {loaded.description}", markup=False, soft_wrap=True)
    was_ready = asyncio.run(
        up(
            loaded,
            name=name,
            directory=directory,
            environ=os.environ,
            reporter=reporter,
            tell=lambda text: console.print(text, markup=False, soft_wrap=True),
            once_ready=once_ready,
        )
    )
    console.print("Stopped; nothing of it runs any more.")
    return 0 if was_ready else INTERRUPTED


def _overrides(overrides: list[str] | None, model: Path | None) -> list[str]:
    chosen = (
        []
        if model is None
        else [
            "model.bundled=null",
            "model.id=null",
            "model.revision=null",
            f"model.path={json.dumps(str(model.absolute()))}",
        ]
    )
    return [*(overrides or []), *chosen]


def _name(profile: str) -> str:
    return Path(profile).stem


def _fail(error: LauncherError) -> None:
    for message in error.messages:
        typer.echo(f"error: {message}", err=True)
    sys.exit(error.exit_code)
