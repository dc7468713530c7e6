"""Serves one side of the comparison and keeps what it answered."""

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from launcher.errors import QuantizeError
from launcher.profile import Device, Profile
from launcher.quantize.gate import scores
from launcher.quantize.gate.records import Record, Task
from launcher.quantize.gate.scores import Scores
from launcher.quantize.gate.scoring import score
from launcher.quantize.gate.serving import serve
from launcher.quantize.gate.settings import NAME, Serving, as_in, default
from launcher.quantize.gate.speed import measure
from launcher.quantize.gate.timings import SpeedSample
from launcher.quantize.worker_process import Listener

SPARE = 64
"""Tokens of an engine's context beyond the longest record: what is generated while speed is measured."""
_SPEED = TypeAdapter(SpeedSample)


def serving(profile: Profile | None, has_gpus: bool, longest: int) -> Serving:
    """How both sides are served: as in this profile, or as this machine can; ``longest``: tokens of a request.

    Raises :class:`QuantizeError` for a profile of GPUs on a machine without any.
    """
    if profile is None:
        return default(Device.CUDA if has_gpus else Device.CPU, longest)
    if profile.device is Device.CUDA and not has_gpus:
        raise QuantizeError(
            "--profile: it is for GPUs, and this machine has none to judge with: leave it out, and name the hardware "
            "that will serve the model by --target"
        )
    return as_in(profile, longest)


class Sides:
    """Serves models one after the other, all in the same way, and asks each the same."""

    def __init__(
        self,
        serving: Serving,
        records: tuple[Record, ...],
        task: Task | None,
        environ: Mapping[str, str],
        listener: Listener,
    ) -> None:
        self._serving, self._records, self._task = serving, records, task
        self._environ, self._listener = environ, listener

    @property
    def key(self) -> Mapping[str, Any]:
        """What the answers depend on besides the model."""
        asked = [dataclasses.asdict(each) for each in self._records]
        task = None if self._task is None else dataclasses.asdict(self._task)
        serving = json.loads(json.dumps(dataclasses.asdict(self._serving), default=str))
        return {"serving": serving, "asked": [asked, task]}

    def ask(self, model: Path, title: str, log: Path, *, twice: bool, timed: bool = True) -> dict[str, Any]:
        """Scores (``scores``; ``again`` when asked twice) and ``speed`` (when timed) of the model, as JSON says them.

        Raises the errors of :func:`launcher.quantize.gate.serving.serve`.
        """
        return asyncio.run(self._ask(model, title, log, twice, timed))

    async def _ask(self, model: Path, title: str, log: Path, twice: bool, timed: bool) -> dict[str, Any]:
        def tell(what: str, done: int, of: int) -> None:
            self._listener.progress(f"{title}: {what}", done, of)

        tell("starting vLLM", 0, 1)
        async with serve(model, self._serving, log, self._environ) as url:
            found = await score(url, NAME, self._records, self._task, tell)
            again = await score(url, NAME, self._records, None, tell) if twice else None
            prompts = [record.ids for record in self._records]
            speed = await measure(url, NAME, prompts, tell) if timed else None
        return {
            "scores": scores.dump(found),
            "again": None if again is None else scores.dump(again),
            "speed": None if speed is None else _SPEED.dump_python(speed, mode="json"),
        }


def scores_of(answers: Mapping[str, Any], which: str = "scores") -> Scores:
    """Of what :meth:`Sides.ask` returned."""
    return scores.parse(answers[which])


def speed_of(answers: Mapping[str, Any]) -> SpeedSample:
    """Of what :meth:`Sides.ask` returned."""
    return _SPEED.validate_python(answers["speed"])
