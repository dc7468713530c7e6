"""The verb that shows a deployment live."""

from typing import Annotated

import typer
from rich.console import Console

from launcher.commands.options import Output, OutputOption, RunDirectoryOption
from launcher.local.run_directory import RunDirectory
from launcher.top import live
from launcher.top.frame import frame
from launcher.top.look import gather


def top(
    run_dir: RunDirectoryOption,
    once: Annotated[bool, typer.Option("--once", help="Print it once; so it is where there is no terminal.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """What runs now, live: instances, pairs, rates and failures, until Ctrl+C."""
    directory, console = RunDirectory(run_dir.absolute()), Console(highlight=False)
    if output is Output.JSON:
        typer.echo(gather(directory)[1])
        return
    if once or not console.is_terminal:
        named, (overview, _) = live.title(directory), gather(directory)
        screen = live.screen_of(console, whole=True)
        console.print(frame(named, overview, "", screen))
        return
    try:
        live.watch(directory, console)
    except KeyboardInterrupt:  # how one leaves it
        return
