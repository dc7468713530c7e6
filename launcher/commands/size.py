"""`launcher size`: how much memory a deployment needs and what fits; starts nothing."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError

from launcher import loader, machine, planner
from launcher.commands.options import (
    ModelOption,
    Output,
    OutputOption,
    RunDirectoryOption,
    SetOption,
    name_of,
    with_model,
)
from launcher.errors import RunDirectoryError
from launcher.inventory import Checkpoint, Inventory
from launcher.plan import Plan
from launcher.profile import Device
from launcher.sizing import history, table
from launcher.sizing.changes import changes, options, together, transfer
from launcher.sizing.deployment import deployment_size, engine_settings, wanted
from launcher.sizing.measured import Measured
from launcher.sizing.models import ModelFacts, look_up
from launcher.sizing.report import OptionsReport, Report, to_json
from launcher.sizing.settings import EngineSettings, settings_of
from proxy.topology import Role

_CARDS = (24, 32, 48, 80, 96, 141)
"""GiB of usual devices."""
_PROMPT = 2048
_LEAST = 2**20
"""Bytes of a device; what is less was meant in another unit."""
_MOST_TOKENS = 10**9
_SIZE = TypeAdapter(ByteSize)


def _bytes(text: str) -> int:
    if text.strip().replace(".", "").isdigit():
        raise typer.BadParameter(f"{text} has no unit: write a size such as 24GiB or 10GB/s")
    try:
        return int(_SIZE.validate_python(text.removesuffix("/s")))
    except ValidationError as exc:
        raise typer.BadParameter(f"{text} is no size such as 24GiB or 10GB/s") from exc


def _share(text: str) -> float:
    number = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.replace(" ", ""))
    value = float(number[1]) / (100 if number[2] else 1) if number else -1.0
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"{text} is no share such as 20% or 0.2")
    return value


def _devices(text: str) -> tuple[int, int]:
    number, separator, size = text.lower().replace(" ", "").partition("x")
    if not separator or not number.isdecimal() or not 1 <= int(number) <= 64:
        raise typer.BadParameter(f"{text} does not name devices such as 2x24GiB")
    memory = _bytes(size)
    if memory < _LEAST:
        raise typer.BadParameter(f"{text}: devices of {memory} bytes; write a unit, e.g. 2x24GiB")
    return int(number), memory


Margin = Annotated[str, typer.Option("--margin", metavar="SHARE", help="Kept free beside what is planned.")]
On = Annotated[
    str | None, typer.Option("--on", metavar="NxSIZE", help="What would fit on these devices, e.g. 2x24GiB?")
]
Bandwidth = Annotated[
    str | None, typer.Option("--bandwidth", metavar="SIZE/s", help="From prefill to decode, e.g. 10GB/s.")
]
PromptTokens = Annotated[
    int, typer.Option("--prompt-tokens", min=1, max=_MOST_TOKENS, help="Of the prompt whose KV cache is moved.")
]


def size(
    run_dir: RunDirectoryOption,
    profile: Annotated[
        str | None, typer.Argument(metavar="[PROFILE]", help="A shipped name (see `list`) or a path.")
    ] = None,
    overrides: SetOption = None,
    model: ModelOption = None,
    on: On = None,
    margin: Margin = "20%",
    bandwidth: Bandwidth = None,
    prompt_tokens: PromptTokens = _PROMPT,
    running: Annotated[bool, typer.Option("--running", help="What came at the last starts in --run-dir.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Memory of each engine and device, and what fits; starts nothing."""
    if running:
        _show_history(run_dir.absolute(), output)
        return
    kept, devices = _share(margin), None if on is None else _devices(on)
    speed = None if bandwidth is None else _bytes(bandwidth)
    if speed == 0:
        raise typer.BadParameter("nothing is ever moved at 0", param_hint="--bandwidth")
    if profile is None:
        if model is None or devices is None:
            raise typer.BadParameter("name a PROFILE, --model with --on, or --running")
        _show(_of_folder(model, devices, kept), output)
        return
    loaded = loader.load(profile, with_model(overrides, model))
    inventory, name = machine.look(os.environ), name_of(profile)
    plan = planner.plan(loaded, inventory, name=name, run_directory=run_dir.absolute())
    models = look_up(wanted(plan), os.environ)
    if devices is not None:
        _show(_on_devices(plan, inventory, models, devices, kept), output)
        return
    before = history.by_key(history.read(run_dir.absolute()))
    _show(_report(plan, inventory, models, before, kept, prompt_tokens, speed), output)


def _report(
    plan: Plan,
    inventory: Inventory,
    models: Mapping[Checkpoint, ModelFacts],
    before: Mapping[str, Measured],
    margin: float,
    prompt_tokens: int,
    bandwidth: int | None,
) -> Report:
    deployment = deployment_size(plan, inventory, models, margin=margin, before=before)
    settings = engine_settings(plan)
    pools = {each.name: each.pool for each in plan.engines}
    by_role = {"-".join(filter(None, (each.role, pools[each.name]))): each for each in reversed(deployment.instances)}
    is_unknown = plan.device is Device.CUDA and not deployment.devices
    cards = [gib * 2**30 for gib in _CARDS] if is_unknown else []
    decode = next((settings[each.name] for each in plan.engines if each.role is Role.DECODE), None)
    return Report(
        deployment,
        {card: deployment_size(plan, inventory, models, margin=margin, card=card) for card in cards},
        transfer(decode, models, prompt_tokens, bandwidth) if decode is not None else None,
        {role: tuple(changes(each, settings[each.name], models)) for role, each in by_role.items() if each.card},
    )


def _on_devices(
    plan: Plan,
    inventory: Inventory,
    models: Mapping[Checkpoint, ModelFacts],
    on: tuple[int, int],
    margin: float,
) -> OptionsReport:
    number, card = on
    settings = engine_settings(plan, card)
    found = {
        "-".join(filter(None, (each.role.value, each.pool))): tuple(
            options(each.name, settings[each.name], models, number, card, margin)
        )
        for each in reversed(plan.engines)
    }
    reasons = [
        f"{each.model.name} is not on this machine, nor shipped with Duet"
        for each in settings.values()
        if each.model not in models
    ]
    ordered = dict(reversed(found.items()))
    return OptionsReport(plan.profile, number, card, ordered, together(ordered, number), tuple(dict.fromkeys(reasons)))


def _of_folder(model: Path, on: tuple[int, int], margin: float) -> OptionsReport:
    number, card = on
    settings: EngineSettings = settings_of(("--model", str(model.absolute())), {}, Device.CUDA, ("", card))
    models = look_up([settings.model], os.environ)
    found = tuple(options("engine", settings, models, number, card, margin))
    reasons = () if found else (f"{model} does not describe a model whose memory can be counted",)
    return OptionsReport(str(model), number, card, {"": found}, "", reasons)


def _show_history(directory: Path, output: Output) -> None:
    found = list(history.latest(history.read(directory)).values())
    if output is Output.JSON:
        typer.echo(history.to_json(found))
    elif not found:
        raise RunDirectoryError(f"no start is recorded in {directory}: start something there, or name --run-dir")
    else:
        table.records(found)


def _show(told: Report | OptionsReport, output: Output) -> None:
    if output is Output.JSON:
        typer.echo(to_json(told))
    elif isinstance(told, Report):
        table.report(told)
    else:
        table.options(told)
