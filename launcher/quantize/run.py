"""The story of a quantization: prepare, quantize, judge, and publish what passes."""

import dataclasses
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import psutil

from launcher import loader, weights
from launcher.errors import QuantizeError
from launcher.inventory import Inventory
from launcher.profile import Device, Profile
from launcher.quantize import before, calibration, contradictions, ending, manifest, recipe, report
from launcher.quantize.attempt import Bench, Tried, attempt
from launcher.quantize.gate.records import records_of, task_of
from launcher.quantize.gate.serving import plan
from launcher.quantize.gate.shape import Verdict
from launcher.quantize.inputs import readable
from launcher.quantize.original import Original, original
from launcher.quantize.outcome import Outcome, UnitScore
from launcher.quantize.request import Request
from launcher.quantize.scheme import Choice, Scheme, choose
from launcher.quantize.sides import SPARE, Sides, serving
from launcher.quantize.units import group_size, without
from launcher.quantize.worker_process import Listener, Worker
from launcher.quantize.workspace import Workspace, digest_of_file, show


def quantize(
    request: Request, python: Path, inventory: Inventory, environ: Mapping[str, str], listener: Listener
) -> Outcome:
    """Quantize as asked; the report is written, and a checkpoint published, when this returns.

    Raises :class:`QuantizeError` when it cannot be done; finished steps are kept for the next run.
    """
    began, started = time.monotonic(), datetime.now(UTC)
    profile = None if request.profile is None else loader.load(request.profile)
    found = original(request.model, inventory.cache, environ, listener.note)
    found = dataclasses.replace(found, parts=without(found.parts, request.ignore))
    most = before.most_tokens(request.max_tokens, found, SPARE)
    is_cut = most < request.max_tokens
    request = dataclasses.replace(request, max_tokens=most)
    target = before.target_of(request.target, inventory.gpus)
    choice = choose(request.scheme, target, parameters=found.parameters, is_mixture=found.is_mixture)
    split = request.tensor_parallel or _tensor_parallel(profile)
    contradictions.refuse(request, choice.scheme, found, split)
    space = Workspace(request.out)
    readable(request.calibration, "--calibration")
    if request.task is not None:
        readable(request.task, "--task")
    has_gpus = bool(inventory.gpus)
    planned = serving(profile, has_gpus, most + SPARE)
    plan(found.path, planned, inventory)  # what cannot be judged is not made
    if is_cut:
        listener.note(f"records are cut at {most:,} tokens: the model takes {most + SPARE:,}, answers included")
    for text in (choice.why, *choice.warnings):
        listener.note(text)
    disk = psutil.disk_usage(str(_there(request.out))).free
    for text in before.notes(found, choice.scheme, request, split, disk=disk, memory=inventory.memory_available):
        listener.note(text)
    with space.held():
        worker = Worker(python, space.work, environ, listener)
        calibrated_with = _digest(request.calibration)
        prepared, records = _prepared(request, calibrated_with, found, space, worker)
        listener.note(calibration.summary(prepared["facts"]))
        needs_data = choice.scheme is not Scheme.FP8
        for text in calibration.judged(prepared["facts"], needs_data=needs_data, force=request.force):
            listener.note(text)
        sides = Sides(
            serving(profile, has_gpus, _longest(prepared)),
            records_of(prepared["held_out"]),
            task_of(prepared["task"]),
            environ,
            listener,
        )
        key = {"model": found.digest, "records": records.name, "seed": request.seed}
        group = group_size(found.parts.units, split) if choice.scheme is Scheme.INT4 else None
        bench = Bench(request, found, choice.scheme, target, group, space, worker, sides, records, key)
        tried, sensitivity = _tried(bench, has_gpus, listener)
        outcome = _outcome(request, found, choice, target.name, planned.device, inventory, prepared, tried, sensitivity)
        outcome = dataclasses.replace(
            outcome,
            started=started.isoformat("T", "seconds"),
            seconds=time.monotonic() - began,
            digests={**outcome.digests, "calibration": calibrated_with},
        )
        return _ended(outcome, request, prepared, space, tried[-1])


def _prepared(
    request: Request, calibrated_with: str, found: Original, space: Workspace, worker: Worker
) -> tuple[dict[str, Any], Path]:
    asked = {"records": request.records, "held_out": request.held_out, "max_tokens": request.max_tokens}
    files = {"calibration": str(request.calibration.absolute()), "task": request.task and str(request.task.absolute())}
    key = {
        "model": found.digest,
        "calibration": calibrated_with,
        "task": request.task and _digest(request.task),
        "seed": request.seed,
        **asked,
    }
    job = {"step": "prepare", "model": str(found.path), "seed": request.seed, **asked, **files}

    prepared = space.once("prepare", key, lambda named: worker.run(named, job))
    return prepared, space.kept("prepare", key)


def _tried(bench: Bench, accelerated: bool, listener: Listener) -> tuple[list[Tried], tuple[UnitScore, ...]]:
    """Attempts until one does not fail by its quality."""
    request, tried = bench.request, list[Tried]()
    sensitivity: tuple[UnitScore, ...] = ()
    steps = recipe.steps(bench.scheme, fast=request.fast, accelerated=accelerated, given=request.algorithm)
    for number, step in enumerate(islice(steps, request.attempts), 1):
        made, scored = attempt(bench, number, step)
        tried.append(made)
        sensitivity = tuple(scored) or sensitivity
        judgement = made.attempt.judgement
        if judgement is None or judgement.verdict is not Verdict.FAIL:
            break
        listener.note(f"attempt {number} ({made.attempt.algorithm}) fails: {judgement.reasons[0]}")
    return tried, sensitivity


def _outcome(
    request: Request,
    found: Original,
    choice: Choice,
    target: str,
    device: Device,
    inventory: Inventory,
    prepared: Mapping[str, Any],
    tried: list[Tried],
    sensitivity: tuple[UnitScore, ...],
) -> Outcome:
    attempts = tuple(each.attempt for each in tried)
    verdict = ending.verdict_of(attempts)
    return Outcome(
        verdict=verdict,
        headline=ending.headline(verdict, choice.scheme, attempts, found.size),
        model=found.name if not found.is_folder else str(found.path),
        scheme=choice.scheme.value,
        choice=". ".join((choice.why, *choice.warnings)),
        target=target,
        device=device.value,
        seed=request.seed,
        command=request.command,
        versions={"duet": version("duet-serve"), "vllm": inventory.engine_version, **tried[-1].versions},
        started="",
        seconds=0.0,
        baseline_size=found.size,
        calibration=prepared["facts"],
        limits=dataclasses.asdict(request.limits),
        attempts=attempts,
        sensitivity=sensitivity,
        digests={"model": found.digest},
        next_steps=tuple(ending.next_steps(verdict, request, choice.scheme, attempts, sensitivity)),
    )


def _ended(outcome: Outcome, request: Request, prepared: Mapping[str, Any], space: Workspace, last: Tried) -> Outcome:
    """Publish, or keep the candidate from being taken for a model; the report is written either way."""
    is_good = outcome.verdict is Verdict.PASS
    is_published = is_good or (request.publish_anyway and last.attempt.judgement is not None)
    if is_published:
        show(last.folder)
        digest = weights.digest(last.folder)
        outcome = dataclasses.replace(
            outcome,
            published=str(space.out),
            forced=not is_good,
            digests={**outcome.digests, "checkpoint": digest or ""},
        )
    space.report.mkdir(exist_ok=True)
    (space.report / "report.html").write_text(report.render(outcome))
    (space.report / "report.json").write_text(report.to_json(outcome))
    if is_published:
        papers = {
            "manifest.json": manifest.to_json(outcome),
            "report.json": report.to_json(outcome),
            "calibration.json": json.dumps(prepared["distribution"]),
        }
        space.publish(last.folder, papers)
        space.clear()
    return outcome


def _longest(prepared: Mapping[str, Any]) -> int:
    """Tokens that an engine must take."""
    held_out = [len(each["ids"]) for each in prepared["held_out"]]
    items = (prepared["task"] or {"items": []})["items"]
    asked = [len(item["ids"]) + max(map(len, item.get("choices", [[]]))) for item in items]
    return max([*held_out, *asked], default=0) + SPARE


def _tensor_parallel(profile: Profile | None) -> int:
    """The most that any role splits the model by."""
    return max((settings.tensor_parallel for _, settings in profile.roles.items()), default=1) if profile else 1


def _there(path: Path) -> Path:
    """The path, or the nearest of its parents that exists."""
    return next((each for each in (path, *path.absolute().parents) if each.exists()), Path("/"))


def _digest(file: Path) -> str:
    try:
        return digest_of_file(file)
    except OSError as exc:
        raise QuantizeError(f"cannot read {file}: {exc.strerror}") from exc
