"""What the launcher shows while a deployment starts and runs: live bars on a terminal, plain lines elsewhere."""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from launcher.local.deployment import Deployment, InstanceState, State
from launcher.local.load_progress import STAGES


class LoadReporter:
    """A :class:`launcher.local.supervisor.Reporter` for people."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._since: float | None = None
        self._tasks: dict[str, TaskID] = {}
        self._seen: dict[str, InstanceState] = {}
        self._bars: Progress | None = None
        self._loaded = False

    def stage(self, instance: str, stage: int) -> None:
        """An engine reached this index of :data:`launcher.local.load_progress.STAGES`."""
        self._show(instance, stage, "starting" if instance == "proxy" else STAGES[stage].title)

    def changed(self, deployment: Deployment) -> None:
        """Some instance's state changed."""
        for now in deployment.instances:
            before, self._seen[now.name] = self._seen.get(now.name), now
            if before is None or before.state is now.state:
                continue
            if now.state is State.READY:
                self._show(now.name, len(STAGES), "ready")
            elif now.state in {State.RESTARTING, State.FAILED}:
                self._line(now.name, f"{now.state}: {now.reason}")
        if deployment.ready:
            self.close()

    def warn(self, text: str) -> None:
        """Something that somebody should look at, but that goes on."""
        self._console.print(f"warning: {text}", markup=False, soft_wrap=True)

    def stopping(self) -> None:
        """From now on everything is being stopped."""
        self.close()
        self._console.print("Stopping (running answers may end; once more Ctrl+C breaks them off)")

    def close(self) -> None:
        """Leave the bars as they are and go on with plain lines."""
        self._loaded = True
        if self._bars is not None:
            self._bars.stop()

    def _show(self, instance: str, stage: int, title: str) -> None:
        now = time.monotonic()
        self._since = self._since or now
        if self._loaded or not self._console.is_terminal:
            self._line(instance, f"{title} ({now - self._since:.0f} s)")
            return
        if self._bars is None:
            self._bars = Progress(
                TextColumn("  {task.description:12}"),
                BarColumn(24),
                TimeElapsedColumn(),
                TextColumn("{task.fields[title]}"),
                console=self._console,
            )
            self._bars.start()
        if instance not in self._tasks:
            self._tasks[instance] = self._bars.add_task(instance, total=len(STAGES), title=title)
        self._bars.update(self._tasks[instance], completed=stage, title=title)

    def _line(self, instance: str, text: str) -> None:
        self._console.print(f"  {instance:12} {text}", markup=False, soft_wrap=True)
