"""One attempt: a candidate is made, looked at, served, and judged."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from launcher.quantize import guards, recipe, workspace
from launcher.quantize.gate.faster import compare_speed
from launcher.quantize.gate.judge import judge
from launcher.quantize.original import Original
from launcher.quantize.outcome import Attempt, UnitScore
from launcher.quantize.recipe import TITLES, Step
from launcher.quantize.request import Request
from launcher.quantize.scheme import Scheme, Target
from launcher.quantize.sides import Sides, scores_of, speed_of
from launcher.quantize.worker_process import Worker
from launcher.quantize.workspace import Workspace

_EXPERTS = "experts"
"""The guard that ``--force`` overrules."""
_SENSITIVITY = {"most_records": 16, "most_tokens": 128}


@dataclass(frozen=True, slots=True)
class Bench:
    """What all attempts share."""

    request: Request
    original: Original
    scheme: Scheme
    target: Target
    group: int | None
    space: Workspace
    worker: Worker
    sides: Sides
    records: Path
    """The file that ``prepare`` wrote."""
    key: Mapping[str, Any]
    """Of model, records and seed."""


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt and its checkpoint."""

    attempt: Attempt
    folder: Path
    versions: Mapping[str, str]


def attempt(bench: Bench, number: int, step: Step) -> tuple[Tried, Sequence[UnitScore]]:
    """Make a candidate and judge it; also the sensitivity of the units where the step asks for it."""
    began = time.monotonic()
    found = sensitivity(bench) if step.budget else ()
    scores = {unit.name: unit.fisher if unit.kl is None else unit.kl for unit in found}
    parts = bench.original.parts
    finer = recipe.kept(scores, parts.units, step.budget) if step.budget else ()
    told = recipe.recipe(step, bench.scheme, parts, bench.group, finer, has_int8=bench.target.has_int8)
    result = bench.space.once(
        "quantize",
        {**bench.key, "recipe": told},
        lambda named: _make(bench, told, named),
        lambda made: workspace.weighs(bench.space.candidate(made["folder"])) == made["bytes"],
    )
    folder = bench.space.candidate(result["folder"])
    looked = tuple(
        guards.after(
            result,
            recipe.planned(told, parts),
            experts=bench.original.packed_experts,
            expected=_expected(bench, finer),
        )
    )
    share = _parameters(bench, finer) / _parameters(bench, [unit.name for unit in parts.units])
    made = Attempt(number, TITLES[step.algorithm], told, finer, share, result["bytes"], 0.0, looked)
    if all(each.is_ok or (each.name == _EXPERTS and bench.request.force) for each in looked):
        made = _judged(bench, made, folder)
    return Tried(replace(made, seconds=time.monotonic() - began), folder, result["versions"]), found


def baseline(bench: Bench) -> Mapping[str, Any]:
    """The original's answers, asked once."""
    key = {"model": bench.original.digest, **bench.sides.key}
    log = bench.space.work / "baseline.log"
    return bench.space.once(
        "baseline", key, lambda _: bench.sides.ask(bench.original.path, "original", log, twice=True)
    )


def sensitivity(bench: Bench) -> tuple[UnitScore, ...]:
    """Of all units, the most sensitive first."""
    units = [
        {
            "name": unit.name,
            "scheme": bench.scheme.value,
            "group": bench.group,
            "layers": [layer.name for layer in unit.layers],
        }
        for unit in bench.original.parts.units
    ]
    job = {**_SENSITIVITY, "units": units, "records": str(bench.records), "model": str(bench.original.path)}
    found = bench.space.once(
        "sensitivity",
        {**bench.key, "units": units},
        lambda named: bench.worker.run(named, {"step": "sensitivity", "seed": bench.request.seed, **job}),
    )
    sizes = {unit.name: unit.parameters for unit in bench.original.parts.units}
    scored = [UnitScore(each["name"], sizes[each["name"]], each["fisher"], each["kl"]) for each in found["units"]]
    return tuple(sorted(scored, key=lambda each: -(each.fisher if each.kl is None else each.kl)))


def _make(bench: Bench, told: Mapping[str, Any], named: str) -> dict[str, Any]:
    is_free = all(group["scheme"] == Scheme.FP8.value for group in told["groups"])
    job = {
        "step": "quantize",
        "model": str(bench.original.path),
        "records": None if is_free else str(bench.records),
        "seed": bench.request.seed,
        "recipe": told,
        "out": str(bench.space.candidate(f"candidate-{named}")),
    }
    # What the worker leaves is not kept yet: it may be interrupted before the candidate is hidden.
    result = bench.worker.run(f"{named}-step", job)
    workspace.hide(bench.space.candidate(f"candidate-{named}"))
    return {**result, "folder": f"candidate-{named}"}


def _judged(bench: Bench, made: Attempt, folder: Path) -> Attempt:
    before = baseline(bench)
    workspace.show(folder)
    try:
        title, log = f"quantized by {made.algorithm}", bench.space.work / f"{folder.name}.log"
        key = {"folder": folder.name, **bench.sides.key}
        after = bench.space.once("answers", key, lambda _: bench.sides.ask(folder, title, log, twice=False))
    finally:
        workspace.hide(folder)
    judgement = judge(scores_of(before), scores_of(before, "again"), scores_of(after), bench.request.limits)
    return replace(made, judgement=judgement, speed=compare_speed(speed_of(before), speed_of(after)))


def _expected(bench: Bench, finer: Sequence[str]) -> int:
    """Bytes; units in ``finer`` as if they stayed in 16 bits."""
    kept = 2 * _parameters(bench, finer)
    return guards.expected_size(bench.original.size, bench.original.linear_size - kept, bench.scheme)


def _parameters(bench: Bench, names: Collection[str]) -> int:
    """Numbers in the units of these names."""
    return sum(unit.parameters for unit in bench.original.parts.units if unit.name in names)
