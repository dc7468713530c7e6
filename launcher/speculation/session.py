"""From what the command line asks to files: prepare, tune, write."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from launcher import loader
from launcher.errors import MeasureError
from launcher.measure.bench_shape import Sent
from launcher.measure.conditions import Conditions
from launcher.measure.figures_shape import Objectives
from launcher.measure.request import Request
from launcher.measure.telling import Tell
from launcher.measure.workload import Workload
from launcher.measure.workload_file import Work, load
from launcher.plain import plain
from launcher.profile import Profile
from launcher.speculation import methods
from launcher.speculation.evidence import Evidence
from launcher.speculation.record import VISITS, Record
from launcher.speculation.save import Draft, draft
from launcher.speculation.setting import Cell, Setting
from launcher.speculation.tune import Wanted, drifts, tune
from launcher.speculation.visit import CONDITIONS, Deployments

_REQUESTS = 2000
"""Different ones, as nobody sends more in one load of one start; a prefix cache must not know them."""
_WEIGHED = 500
"""Requests by which temperatures are weighed."""
_SHARE = 0.02
"""Temperatures rarer than this are not measured."""


@dataclass(frozen=True, slots=True)
class Asked:
    """By the command line, or by a report that is made again."""

    profile: str
    overrides: tuple[str, ...]
    workload: str
    ks: tuple[int, ...]
    concurrencies: tuple[int, ...]
    methods: tuple[str, ...] = ()
    """Empty: all that are available."""
    temperatures: tuple[float, ...] = ()
    """Empty: the workload's."""
    seconds: float = 30.0
    seed: int = 0
    rounds: int = 3
    objectives: Objectives | None = None
    """``None``: the profile's, as far as it says any."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What came of it; nothing of it is written yet but in the work folder."""

    evidence: Evidence
    drafted: Draft
    context: Mapping[str, JsonValue]
    notes: tuple[str, ...]
    """What speaks against relying on it."""


async def session(
    asked: Asked,
    work: Work,
    folder: Path,
    out: Path | None,
    tell: Tell,
    say: Callable[[str], None],
    command: str,
    key: str | None = None,
) -> Tuned:
    """Raises :class:`LauncherError`: for what cannot be tuned before anything is started, where possible."""
    profile = loader.load(asked.profile, asked.overrides)
    known = methods.available(profile)
    chosen = asked.methods or tuple(known)
    _refuse(asked, chosen, known, profile)
    draft(asked.profile, methods.written(Setting(chosen[0], 1), known), out)  # whether it can be written at all
    requests = work.requests(asked.seed)[:_REQUESTS]
    weights = _weights(asked, requests)
    engines, largest = methods.engines(profile)
    objectives = asked.objectives or _written(profile)
    name = Path(asked.profile).stem
    sent = Sent(work.name, work.workload.model_dump(mode="json"), work.recorded, "")
    repeated: dict[str, Any] = {
        "asked": asdict(asked),
        "sent": _SENT.dump_python(sent, mode="json"),
        "profile": profile.model_dump(mode="json", exclude_unset=True),
    }
    record = Record(folder, repeated)
    deployments = Deployments(
        reference=asked.profile,
        overrides=asked.overrides,
        profile=profile,
        settings=dict(known),
        requests=requests,
        cells=[Cell(load, temperature) for load in asked.concurrencies for temperature in weights],
        objectives=objectives,
        seconds=asked.seconds,
        folder=folder,
        command=command,
        tell=tell,
        key=key,
    )
    wanted = Wanted(
        profile=name,
        methods=chosen,
        ks=asked.ks,
        concurrencies=asked.concurrencies,
        weights=weights,
        engines=engines,
        largest=largest,
        seed=asked.seed,
        rounds=asked.rounds,
    )
    evidence = await tune(wanted, deployments, record, say)
    what = methods.written(Setting(evidence.method, evidence.k, evidence.schedule), known)
    context = {**repeated, "conditions": _conditions(folder), "objectives": asdict(objectives)}
    context["weights"] = {str(each): share for each, share in weights.items()}
    context["notes"] = drifts(record.visits)
    context["others"] = max((each.others for each in record.visits), default=0.0)
    context["visits"] = [plain(asdict(each)) for each in record.visits]
    return Tuned(evidence, draft(asked.profile, what, out), plain(context), drifts(record.visits))


_SENT = TypeAdapter(Sent)
_ASKED = TypeAdapter(Asked)
_CONDITIONS = TypeAdapter(Conditions)


def again(file: Path) -> tuple[Asked, Work]:
    """What made an evidence's file; raises :class:`MeasureError` when it cannot tell."""
    try:
        context = json.loads(file.read_text("utf-8"))["context"]
        sent = _SENT.validate_python(context["sent"])
        workload = Workload.model_validate_json(json.dumps(sent.workload))
        return _ASKED.validate_python(context["asked"]), Work(sent.name, workload, sent.recorded)
    except OSError as exc:
        raise MeasureError(f"{file} cannot be read: {exc.strerror}") from exc
    except (KeyError, TypeError, ValueError, ValidationError) as exc:
        raise MeasureError(
            f"{file} is no evidence of a tuning ({type(exc).__name__}): name a .speculation.json"
        ) from exc


def finish(folder: Path) -> None:
    """Once all is written: what was measured stays, but the next tuning begins anew."""
    for name in (VISITS, CONDITIONS):
        file = folder / name
        if file.exists():
            file.replace(file.with_stem(f"{file.stem}-last"))


def work_of(asked: Asked) -> Work:
    """By the workload's name or path."""
    return load(asked.workload)


def _refuse(asked: Asked, chosen: Sequence[str], known: Mapping[str, methods.Written], profile: Profile) -> None:
    if unknown := [each for each in chosen if each not in known]:
        raise MeasureError(
            f"--method {unknown[0]}: the profile has no settings for it; it can try {', '.join(known)}. Set "
            "speculation with that method in the profile, or by --set"
        )
    role = methods.generating(profile)
    if getattr(profile.roles, role.value).data_parallel > 1:
        raise MeasureError(
            f"roles.{role}.data_parallel: with more than 1 the engine ignores a schedule by batch size, so there is "
            "nothing to tune by load: use replicas in place of data_parallel"
        )
    if not asked.ks or not asked.concurrencies:
        raise MeasureError("--k and --concurrency: name at least one number above 0 each")


def _weights(asked: Asked, requests: Sequence[Request]) -> Mapping[float, float]:
    if asked.temperatures:
        return {each: 1 / len(asked.temperatures) for each in asked.temperatures}
    told = (each.body.get("temperature") for each in requests[:_WEIGHED])
    found = methods.temperatures(value if isinstance(value, int | float) else None for value in told)
    kept = {value: share for value, share in found.items() if share >= _SHARE}
    return {value: share / sum(kept.values()) for value, share in kept.items()}


def _written(profile: Profile) -> Objectives:
    """Only what the profile says itself: a default is nobody's objective."""
    said = profile.objectives.model_fields_set
    return Objectives(
        ttft=profile.objectives.ttft if "ttft" in said else None,
        tpot=profile.objectives.tpot if "tpot" in said else None,
    )


def _conditions(folder: Path) -> JsonValue:
    try:
        found: JsonValue = json.loads((folder / CONDITIONS).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found
