"""The command line, and the one place where an error becomes a message and an exit code."""

import io
import sys

import typer

from launcher.commands import (
    ab,
    advise,
    baseline,
    bench,
    cluster,
    compare,
    doctor,
    operate,
    profiles,
    quantize,
    reading,
    render,
    restart,
    running,
    size,
    starting,
    top,
    tune,
)
from launcher.errors import LauncherError, RunDirectoryError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Turn a profile into running vLLM engines and a proxy.",
    epilog="Exit codes: 0 success; 1 not healthy (status, doctor), not drained (drain, restart); 2 usage; 3 profile; "
    "4 plan, preflight or run directory; 5 a process died; 6 not ready in time; "
    "7 a release is refused, or cannot start (deploy, rollback); 8 no proof (prove, restart, demo), or not shown to be "
    "as good as the original (quantize); 130 interrupted before it was ready.",
)
app.command("list")(reading.list_profiles)
app.command("show")(profiles.show)
app.command("schema")(profiles.print_schema)
app.command("rules")(profiles.rules)
app.command("check")(profiles.check)
app.command("plan")(reading.plan_profile)
app.command("size")(size.size)
app.command("render")(render.render_profile)
app.command("up")(starting.up_profile)
app.command("demo")(starting.demo)
app.command("status")(running.show_status)
app.command("top")(top.top)
app.command("prove")(running.prove)
app.command("logs")(running.show_logs)
app.command("drain")(running.drain_instances)
app.command("resume")(running.resume_instances)
app.command("restart")(restart.restart_instances)
app.command("down")(running.down)
app.command("deploy")(cluster.deploy_profile)
app.command("rollback")(cluster.rollback_release)
app.command("undeploy")(cluster.undeploy_release)
app.command("advise")(advise.advise_technique)
app.command("doctor")(doctor.diagnose)
app.command("baseline")(baseline.record_baseline)
app.add_typer(quantize.app, name="quantize")
app.add_typer(bench.app, name="bench")
app.command("compare")(compare.compare)
app.add_typer(tune.app, name="tune")
app.add_typer(operate.app, name="operate")
app.add_typer(ab.app, name="ab")


def main() -> None:
    """Entry point of the console script; never shows a traceback for an error that is the user's to solve."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character shows its number
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except LauncherError as exc:
        _fail(exc)
    except KeyboardInterrupt:
        sys.exit(starting.INTERRUPTED)
    except OSError as exc:  # of a file or directory that nobody below expected to fail
        _fail(RunDirectoryError(f"{exc.filename or 'output'}: {exc.strerror}"))


def _fail(error: LauncherError) -> None:
    for line in error.log_tail:
        typer.echo(f"  | {line}", err=True)
    for message in error.messages:
        typer.echo(f"error: {message}", err=True)
    sys.exit(error.exit_code)
