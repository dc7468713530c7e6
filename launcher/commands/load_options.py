"""What the options of a load mean together; what contradicts, or would do nothing, is refused."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import typer

from launcher import loader
from launcher.local.run_directory import RunDirectory
from launcher.measure.bench_shape import Settings
from launcher.measure.figures_shape import Objectives
from launcher.measure.load import Arrivals, Closed, Load, Open
from launcher.measure.served import is_url
from launcher.measure.workload_file import Work

_USUAL = 4
"""Requests at once, where nothing is said."""
_SECONDS = 30.0
_OF_OPEN = ("rate", "arrivals", "most")
_OF_LOAD = ("workload", "concurrency", *_OF_OPEN, "speed", "seconds", "requests", "warm_up", "seed", "anonymise")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """As they were given."""

    concurrency: int | None
    rate: float | None
    arrivals: Arrivals | None
    speed: float
    most: int
    seconds: float | None
    requests: int | None
    warm_up: float
    seed: int


def given(context: typer.Context) -> set[str]:
    """The parameters that were written on the command line."""
    return {
        name
        for name in context.params
        if (source := context.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
    }


def refuse_useless(written: set[str], target: str | None, *, again: bool) -> None:
    """Raises :class:`typer.BadParameter` for options that would do nothing."""
    if again:
        _refuse(written, (*_OF_LOAD, "ttft", "tpot"), "--again takes it from the report")
    if target is None:
        _refuse(written, ("overrides", "model", "model_name"), "it is of a PROFILE or URL, and none is named")
    elif is_url(target):
        _refuse(written, ("overrides", "model"), "it is of a profile, and a URL is measured as it is")
    else:
        _refuse(written, ("model_name",), "it is of a URL; a profile has one model")


def load_of(written: set[str], options: LoadOptions) -> Load:
    """Closed unless something of an open loop was written."""
    if "concurrency" in written:
        _refuse(written, _OF_OPEN, "it is of an open loop, --concurrency of a closed one: give either")
    for name in ("rate", "speed", "seconds"):
        if (value := getattr(options, name)) is not None and not math.isfinite(value):
            raise typer.BadParameter(f"--{name} {value:g} has no end: give a finite number")
    if options.arrivals is Arrivals.TRACE:
        _refuse(written, ("rate",), "a trace has its own times: give --speed instead")
        return Open(options.arrivals, speed=options.speed, most=options.most)
    _refuse(written, ("speed",), "it is of --arrivals trace")
    if written.isdisjoint(_OF_OPEN):
        return Closed(options.concurrency or _USUAL)
    if options.rate is None or options.rate <= 0:
        raise typer.BadParameter("an open loop needs --rate, in requests a second")
    return Open(options.arrivals or Arrivals.POISSON, options.rate, most=options.most)


def settings_of(written: set[str], options: LoadOptions, work: Work) -> Settings:
    """All but the objectives."""
    load, seconds = load_of(written, options), options.seconds
    is_trace = isinstance(load, Open) and load.arrivals is Arrivals.TRACE
    if is_trace and not work.recorded:
        raise typer.BadParameter("--arrivals trace needs records with times: --workload FILE.jsonl")
    if not work.recorded:
        _refuse(written, ("anonymise",), "it is of real requests, and these are made up")
    if work.recorded and options.requests is not None and options.requests > len(work.recorded):
        raise typer.BadParameter(f"--requests {options.requests}: the workload has {len(work.recorded)}")
    if seconds is not None and options.requests is not None:
        raise typer.BadParameter("give --seconds or --requests, not both")
    if seconds is not None and seconds <= 0:
        raise typer.BadParameter("--seconds must be above 0")
    if seconds is None and options.requests is None and not is_trace:
        seconds = _SECONDS
    return Settings(load, options.seed, seconds, options.requests, options.warm_up)


def objectives_of(target: str | None, overrides: list[str], run_dir: Path, asked: Objectives) -> Objectives:
    """Those that were asked for, else the profile's own; a URL has none."""
    if target is not None and is_url(target):
        return asked
    if target is not None:
        own = loader.load(target, overrides).objectives
        known = {name: getattr(own, name) for name in own.model_fields_set}
    else:
        plan = RunDirectory(run_dir.absolute()).read_plan()
        known = dict(plan.objectives) if plan is not None else {}
    return Objectives(
        asked.ttft if asked.ttft is not None else known.get("ttft"),
        asked.tpot if asked.tpot is not None else known.get("tpot"),
    )


def _refuse(written: set[str], names: Iterable[str], why: str) -> None:
    for name in names:
        if name in written:
            option = {"overrides": "set"}.get(name, name.replace("_", "-"))
            raise typer.BadParameter(f"--{option} does nothing here: {why}")
