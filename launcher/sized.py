"""Shows what each engine measured when it started beside what was planned, and keeps both in the run directory."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from launcher.inventory import Inventory
from launcher.local.deployment import Deployment, InstanceState, State
from launcher.local.load_progress import last_lines
from launcher.local.run_directory import RunDirectory
from launcher.local.supervisor import Reporter
from launcher.plan import Plan
from launcher.sizing import history
from launcher.sizing.deployment import deployment_size, keys, wanted
from launcher.sizing.history import Planned, Record
from launcher.sizing.measured import deviations, measured_of, sentence
from launcher.sizing.models import look_up
from launcher.sizing.size import InstanceSize

_LINES = 20_000
"""Of an engine's log, at most: what it says while it starts."""


class SizedReporter:
    """A :class:`launcher.local.supervisor.Reporter` in front of another, which hears of everything first."""

    def __init__(
        self,
        inner: Reporter,
        sizes: Mapping[str, tuple[InstanceSize, str]],
        directory: RunDirectory,
        tell: Callable[[str], None],
    ) -> None:
        """``sizes``: engine -> as planned, and the key of engines that need the same memory."""
        self._inner = inner
        self._sizes = sizes
        self._directory = directory
        self._tell = tell
        self._seen: dict[str, float | None] = {}

    def changed(self, deployment: Deployment) -> None:
        """Some instance's state changed."""
        self._inner.changed(deployment)
        for instance in deployment.instances:
            if instance.state is State.READY and self._seen.get(instance.name, 0.0) != instance.started_at:
                self._seen[instance.name] = instance.started_at
                self._compare(instance)

    def warn(self, text: str) -> None:
        """Something that somebody should look at, but that goes on."""
        self._inner.warn(text)

    def stopping(self) -> None:
        """From now on everything is being stopped."""
        self._inner.stopping()

    def _compare(self, instance: InstanceState) -> None:
        if instance.name not in self._sizes:
            return
        planned, key = self._sizes[instance.name]
        real = measured_of(last_lines(self._directory.log(instance.name), _LINES))
        if text := sentence(instance.name, deviations(planned, real)):
            self._tell(text)
        try:
            history.append(self._directory.path, Record(time.time(), instance.name, key, _figures(planned), real))
        except OSError as exc:  # a full disk is no reason to stop serving
            self._inner.warn(f"cannot write {self._directory.path / history.FILE}: {exc.strerror}")


def planned_sizes(
    plan: Plan, inventory: Inventory, directory: Path, environ: Mapping[str, str]
) -> Mapping[str, tuple[InstanceSize, str]]:
    """Engine -> its size, and the key of engines that need the same memory."""
    models = look_up(wanted(plan), environ)
    before = history.by_key(history.read(directory))
    found = deployment_size(plan, inventory, models, before=before)
    named = keys(plan)
    return {each.name: (each, named[each.name]) for each in found.instances}


def _figures(planned: InstanceSize) -> Planned:
    weights = sum(part.bytes for part in planned.parts if part.name in {"weights", "draft"})
    kv = planned.kv
    return Planned(weights, *((None,) * 3 if kv is None else (kv.bytes, kv.tokens, kv.concurrency)))
