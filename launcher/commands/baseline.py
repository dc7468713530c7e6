"""The verb that records a baseline's answers."""

from pathlib import Path
from typing import Annotated

import typer

from launcher.baseline import PROMPTS, keep, read_prompts, record
from launcher.commands.options import address, bearer


def record_baseline(
    url: Annotated[str, typer.Argument(metavar="URL", help="Of the baseline: a proxy or a vLLM server.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    prompts: Annotated[
        Path | None, typer.Option("--prompts", help="A file with a prompt a line; default: a dozen of different kinds.")
    ] = None,
    tokens: Annotated[int, typer.Option("--tokens", min=1, max=1024, help="Of each answer, at most.")] = 32,
    model: Annotated[str | None, typer.Option("--model", help="The name to ask for; default: the first.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", envvar="DUET_CLIENT_KEY", help="That the baseline asks clients for.")
    ] = None,
) -> None:
    """Ask a baseline fixed prompts and keep its answers, for proxy.reference to compare engines with."""
    asked = PROMPTS if prompts is None else read_prompts(prompts)
    reference = record(address(url, "the baseline's"), asked, tokens, model, bearer(key))
    keep(reference, out)
    total = sum(len(each.answer) for each in reference.answers)
    typer.echo(f"{len(reference.answers)} answers of {reference.model}, {total} tokens, are in {out}")
    typer.echo(f"Compare engines with them: --set proxy.reference.file={out.absolute()}")
