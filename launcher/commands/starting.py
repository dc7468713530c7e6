"""Verbs that start a deployment."""

import asyncio
import os
import shlex
import sys
from typing import Annotated

import httpx
import typer
from rich.console import Console

from launcher import loader, show
from launcher.commands.options import ModelOption, ProfileArgument, RunDirectoryOption, SetOption, name_of, with_model
from launcher.console import LoadReporter
from launcher.demo.session import QUESTION, DemoSession
from launcher.local import detach
from launcher.local.run_directory import RunDirectory
from launcher.plan import Plan
from launcher.preflight.finding import Layer
from launcher.speculation.smoke import smoke
from launcher.up import OnceReady, up

INTERRUPTED = 130
SkipOption = Annotated[
    list[Layer] | None,
    typer.Option("--skip", help="Start without asking this layer's rules; repeat for several."),
]


def up_profile(
    profile: ProfileArgument,
    run_dir: RunDirectoryOption,
    overrides: SetOption = None,
    model: ModelOption = None,
    detached: Annotated[bool, typer.Option("--detach", help="Return once it is ready; it runs on.")] = False,
    skip: SkipOption = None,
) -> None:
    """Start a deployment and keep it running until Ctrl+C."""
    settings = with_model(overrides, model)
    directory = RunDirectory(run_dir.absolute())
    if detached:
        loader.load(profile, settings)  # a faulty profile is reported here, not in a log
        raise typer.Exit(detach.start(profile, settings, directory, Console(highlight=False), skip or []))

    async def serve(plan: Plan, client: httpx.AsyncClient) -> bool:
        show.address(console, plan)
        if said := await smoke(plan, client):
            console.print(f"warning: {said.text}" if said.is_warning else said.text, markup=False, soft_wrap=True)
        return True

    console = Console(highlight=False)
    raise typer.Exit(_run(profile, settings, directory, console, serve, skip))


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
    settings = with_model(overrides, model)
    raise typer.Exit(_run("demo", settings, RunDirectory(run_dir.absolute()), console, session))


def _run(
    profile: str,
    settings: list[str],
    directory: RunDirectory,
    console: Console,
    once_ready: OnceReady,
    skip: list[Layer] | None = None,
) -> int:
    loaded = loader.resolve(profile, settings)
    reporter = LoadReporter(console)
    name = name_of(profile)
    console.print(f"{name}: {loaded.profile.description}", markup=False, soft_wrap=True)
    was_ready = asyncio.run(
        up(
            loaded,
            name=name,
            directory=directory,
            environ=os.environ,
            reporter=reporter,
            tell=lambda text: console.print(text, markup=False, soft_wrap=True),
            once_ready=once_ready,
            layers=frozenset(Layer) - frozenset(skip or ()),
        )
    )
    console.print("Stopped; nothing of it runs any more.")
    return 0 if was_ready else INTERRUPTED
