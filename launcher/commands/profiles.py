"""Verbs for writing profiles: what one may say, what one says, and whether it would run."""

import json
import os
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from launcher import loader, machine, reference, report, resolved, schema
from launcher.commands.options import (
    ModelOption,
    Output,
    OutputOption,
    ProfileArgument,
    RunDirectoryOption,
    SetOption,
    name_of,
    with_model,
)
from launcher.errors import PreflightError, ProfileError
from launcher.preflight import catalogue
from launcher.preflight.examine import Report, examine
from launcher.preflight.finding import Layer
from launcher.tables import new_table, print_table

ProfilesArgument = Annotated[list[str], typer.Argument(metavar="PROFILE...", help="Shipped names or paths.")]
LayersOption = Annotated[
    list[Layer] | None, typer.Option("--layer", help="Ask only the rules of this layer; repeat for several.")
]


def check(
    profiles: ProfilesArgument,
    run_dir: RunDirectoryOption,
    layers: LayersOption = None,
    overrides: SetOption = None,
    model: ModelOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Judge profiles on this machine and start nothing; exit code 3 for a faulty one, 4 if one would not run."""
    found: dict[str, Report | ProfileError] = {}
    console, inventory = Console(highlight=False), machine.look(os.environ)
    for profile in profiles:
        try:
            loaded = loader.resolve(profile, with_model(overrides, model))
        except ProfileError as exc:
            found[profile] = exc
        else:
            found[profile] = examine(
                loaded,
                inventory,
                name=name_of(profile),
                run_directory=run_dir.absolute(),
                environ=os.environ,
                layers=frozenset(layers or Layer),
            )
        if output is Output.TEXT:
            _print(console, profile, found[profile])
    if output is Output.JSON:
        typer.echo(report.as_json(found))
    raise typer.Exit(max(map(_exit_code, found.values()), key=lambda code: (code == ProfileError.exit_code, code)))


def show(
    profile: ProfileArgument, overrides: SetOption = None, model: ModelOption = None, output: OutputOption = Output.TEXT
) -> None:
    """Print all values of a profile, defaults included, and where each comes from."""
    loaded = loader.resolve(profile, with_model(overrides, model))
    values = resolved.values(loaded)
    if output is Output.JSON:
        typer.echo(json.dumps([value.as_dict() for value in values], indent=2))
    else:
        resolved.show(values)


class SchemaFormat(StrEnum):
    """How the schema is printed."""

    JSON = "json"
    MARKDOWN = "markdown"


def print_schema(
    as_: Annotated[SchemaFormat, typer.Option("--as", help="For editors, or as a page to read.")] = SchemaFormat.JSON,
) -> None:
    """Print the JSON Schema of profiles, by which editors complete and check them."""
    made = schema.of_profiles()
    if as_ is SchemaFormat.JSON:
        typer.echo(json.dumps(made, indent=2))
    else:
        typer.echo(reference.page(made), nl=False)


class RulesFormat(StrEnum):
    """How the rules are printed."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def rules(
    output: Annotated[RulesFormat, typer.Option("--output", help="A table, or all of it.")] = RulesFormat.TEXT,
) -> None:
    """Print what preflight knows: every rule of `check`, with its source."""
    match output:
        case RulesFormat.MARKDOWN:
            typer.echo(catalogue.page(), nl=False)
        case RulesFormat.JSON:
            typer.echo(json.dumps([asdict(entry) for entry in catalogue.entries()], indent=2))
        case RulesFormat.TEXT:
            table = new_table("RULE", "LAYER", "FINDS")
            for entry in catalogue.entries():
                table.add_row(*map(Text, (entry.name, entry.layer.value, entry.finds)))
            print_table(table)


def _print(console: Console, profile: str, found: Report | ProfileError) -> None:
    if isinstance(found, Report):
        report.text(console, profile, found)
    else:
        for message in found.messages:
            console.print(f"error: {message}", markup=False, soft_wrap=True)


def _exit_code(found: Report | ProfileError) -> int:
    if isinstance(found, Report):
        return PreflightError.exit_code if found.has_errors else 0
    return found.exit_code
