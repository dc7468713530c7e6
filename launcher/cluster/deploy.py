"""The stories of `launcher deploy`, `rollback` and `undeploy`."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from launcher.cluster import screen
from launcher.cluster.difference import changes
from launcher.cluster.helm import Helm, options
from launcher.cluster.rollout import deadline
from launcher.cluster.screen import WaitingScreen
from launcher.cluster.values import to_yaml
from launcher.cluster.wait import Clock, Eyes, until_gone, until_ready
from launcher.errors import ClusterError, LauncherError


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be installed."""

    release: str
    chart: str
    values: Mapping[str, object]
    """The plan."""
    files: Sequence[Path]
    """Of values of the user, which win over the plan."""
    settings: Sequence[str]
    """``key=value``, which win over those."""
    create_namespace: bool


class Deployer:
    """Of one namespace."""

    def __init__(self, helm: Helm, cluster: Eyes, console: Console, clock: Clock) -> None:
        self._helm = helm
        self._cluster = cluster
        self._console = console
        self._clock = clock

    def preview(self, wanted: Wanted) -> None:
        """What would change; changes nothing."""
        self._check_namespace(wanted)
        self._show(self._helm.installed(wanted.release), wanted)

    def deploy(self, wanted: Wanted, within: float | None) -> None:
        """Install or upgrade, and wait until it serves; seconds at most, by default what the plan allows."""
        self._check_namespace(wanted)
        installed = self._helm.installed(wanted.release)
        if installed:
            self._show(installed, wanted)
        limit = within or _deadline(wanted.values)
        with _given(wanted) as values:
            self._helm.install(wanted.release, wanted.chart, values, limit)
        self._tell(f"{wanted.release} is installed in the namespace {self._cluster.namespace}; its pods:")
        self._wait(wanted.release, limit, has_earlier=bool(installed))

    def rollback(self, release: str, revision: int | None, within: float | None) -> None:
        """To an earlier revision, and wait until it serves."""
        self._helm.release(release)
        self._helm.rollback(release, revision)
        self._tell(f"{release} is rolled back in the namespace {self._cluster.namespace}; its pods:")
        self._wait(release, within or deadline(self._cluster.look(release).workloads), has_earlier=True)

    def undeploy(self, release: str) -> None:
        """Take it away, and wait until nothing of it runs."""
        self._helm.release(release)
        self._helm.uninstall(release)
        self._watch(lambda shown: until_gone(self._cluster, release, shown, self._clock))
        self._tell(f"{release} is gone")

    def _check_namespace(self, wanted: Wanted) -> None:
        if not wanted.create_namespace and self._cluster.lacks_namespace():
            name = self._cluster.namespace  # a preview by Helm would not miss it
            raise ClusterError(
                f"there is no namespace {name}: give --create-namespace, or `kubectl create namespace {name}`"
            )

    def _wait(self, release: str, within: float, *, has_earlier: bool) -> None:
        try:
            self._watch(lambda shown: until_ready(self._cluster, release, within, shown, self._clock))
        except LauncherError:
            self._tell(f"{release} stays as it is. Look at it{', go back' * has_earlier}, or take it away:")
            for verb in ("status --cluster --release", *["rollback"] * has_earlier, "undeploy"):
                self._tell(f"  launcher {verb} {release} {self._cluster.where}")
            raise
        self._tell(f"{release} serves; how to ask it: helm get notes {release} {self._helm.where}")

    def _watch(self, story: Callable[[WaitingScreen], object]) -> None:
        shown = WaitingScreen(self._console)
        try:
            story(shown)
        finally:
            shown.close()

    def _show(self, installed: str, wanted: Wanted) -> None:
        with _given(wanted) as values:
            planned = self._helm.planned(wanted.release, wanted.chart, values)
        found = changes(installed, planned)
        screen.changes(self._console, found)
        if not found:
            self._tell("nothing changes")

    def _tell(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)


@contextmanager
def _given(wanted: Wanted) -> Iterator[list[str]]:
    """Options of Helm; the plan is in a file meanwhile."""
    with tempfile.TemporaryDirectory(prefix="duet-") as folder:
        plan = Path(folder) / "plan.yaml"
        plan.write_text(to_yaml(wanted.values))
        yield options([plan, *wanted.files], wanted.settings, create_namespace=wanted.create_namespace)


def _deadline(values: Mapping[str, object]) -> int:
    plan = values["plan"]
    engines = plan["engines"] if isinstance(plan, dict) else {}
    return max(int(each["progressDeadlineSeconds"]) for each in engines.values())
