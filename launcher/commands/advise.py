"""The verb that advises: by questions, by options, or by a running deployment's metrics."""

import asyncio
import json
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

from launcher.advice import live, report, text
from launcher.advice.advice import Advice
from launcher.advice.facts import AnswerError, Value, parse_answer
from launcher.advice.judge import advise
from launcher.advice.questions import next_question
from launcher.advice.report import Seen
from launcher.advice.situation import Origin, Situation
from launcher.commands.options import Output, OutputOption, RunDirectoryOption
from launcher.local import about_file
from launcher.local.deployment import Deployment
from launcher.local.run_directory import RunDirectory

_UNKNOWN = "?"


class Latency(StrEnum):
    """What of single requests is too slow."""

    NONE = "none"
    TTFT = "ttft"
    TOKENS = "tokens"
    BOTH = "both"


def advise_technique(
    run_dir: RunDirectoryOption,
    window: Annotated[
        int | None,
        typer.Option("--window", min=1, help="Watch the running deployment for so many seconds (Ctrl+C: no longer)."),
    ] = None,
    memory: Annotated[bool | None, typer.Option("--memory/--no-memory", help="Memory is the bottleneck.")] = None,
    latency: Annotated[Latency | None, typer.Option("--latency", help="What of single requests is too slow.")] = None,
    throughput: Annotated[
        bool | None, typer.Option("--throughput/--no-throughput", help="Throughput is the bottleneck.")
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option("--answer", metavar="NAME=VALUE", help="Any other fact, e.g. concurrency=40 (docs/advice.md)."),
    ] = None,
    ask: Annotated[
        bool | None,
        typer.Option("--ask/--no-ask", help="Ask for what is missing; default: on a terminal, without --window."),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Which technique would help, or that none will; exit code 0 for a no, too."""
    situation, seen = Situation().plus(_answered(memory, latency, throughput, answers or []), Origin.ANSWERED), Seen()
    directory = RunDirectory(run_dir.absolute())
    if window is not None:
        watched = asyncio.run(live.watch(directory, situation, window, _tell(window)))
        situation = watched.situation
        seen = Seen(watched.seconds, watched.requests, watched.idle, watched.notes)
    if not seen.nothing_to_judge and (ask if ask is not None else window is None and sys.stdin.isatty()):
        situation = _asked(situation)
    advice = advise(situation)
    if output is Output.JSON:
        typer.echo(json.dumps(report.document(advice, seen), indent=2, ensure_ascii=False))
    else:
        text.show(advice, seen, Console(highlight=False))
    if window is not None and not seen.nothing_to_judge:
        _note(directory, advice, seen.window or 0.0)


def _answered(
    memory: bool | None, latency: Latency | None, throughput: bool | None, answers: list[str]
) -> dict[str, Value | None]:
    given: dict[str, Value | None] = {"memory_short": memory, "throughput_short": throughput}
    if latency is not None:
        given["ttft_slow"] = latency in (Latency.TTFT, Latency.BOTH)
        given["tokens_slow"] = latency in (Latency.TOKENS, Latency.BOTH)
    for answer in answers:
        try:
            name, value = parse_answer(answer)
        except AnswerError as exc:
            raise typer.BadParameter(str(exc), param_hint="--answer") from exc
        if given.get(name, value) != value:
            raise typer.BadParameter(f"{name} is answered twice, differently", param_hint="--answer")
        given[name] = value
    return given


def _note(directory: RunDirectory, advice: Advice, window: float) -> None:
    """For those who look at the deployment's page."""
    try:
        about_file.note(directory, advice, window)
    except OSError as exc:
        typer.echo(f"warning: what was said is not on the proxy's page: {exc}", err=True)


def _tell(window: int) -> Callable[[Deployment], None]:
    def began(deployment: Deployment) -> None:
        typer.echo(
            f"Watching {deployment.profile} at {deployment.address} for {window} s (Ctrl+C: judge what was seen).",
            err=True,
        )

    return began


def _asked(situation: Situation) -> Situation:
    """With what a person knows; the end of the input ends the questions."""
    declined: set[str] = set()
    while (question := next_question(situation, declined)) is not None:
        prompt = f"{question.question} [{question.allowed}; {_UNKNOWN} or nothing: don't know] "
        typer.echo(prompt, nl=False, err=True)
        said = sys.stdin.readline()
        if not said:
            typer.echo(err=True)
            break
        try:
            value = None if said.strip() in ("", _UNKNOWN) else question.parsed(said.strip())
        except AnswerError as exc:
            typer.echo(str(exc), err=True)
            continue
        if value is None:
            declined.add(question.name)
        situation = situation.plus({question.name: value}, Origin.ANSWERED)
    return situation
