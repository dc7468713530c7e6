"""What the launcher shows while a deployment starts and runs: live bars on a terminal, plain lines elsewhere."""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from launcher.local.deployment import Deployment, InstanceState, Loading, State


class LoadReporter:
    """A :class:`launcher.local.supervisor.Reporter` for people."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._since: float | None = None
        self._tasks: dict[str, TaskID] = {}
        self._seen: dict[str, InstanceState] = {}
        self._bars: Progress | None = None
        self._loaded = False

    def changed(self, deployment: Deployment) -> None:
        """Some instance's state changed."""
        for now in deployment.instances:
            before = self._seen.get(now.name, InstanceState(now.name, now.role, now.url))
            self._seen[now.name] = now
            if now.waits_for and now.waits_for != before.waits_for:
                self._show(now.name, 0.0, f"waits for {now.waits_for}")
            elif now.loading is not None and now.loading != before.loading:
                self._load(now.name, before.loading, now.loading)
            elif before.state is now.state:
                continue
            elif now.state is State.READY:
                self._show(now.name, 1.0, "ready")
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

    def _load(self, instance: str, before: Loading | None, now: Loading) -> None:
        if self._has_bars or before is None or before.title != now.title:  # a line for each piece would be too many
            self._show(instance, now.fraction, str(now))

    @property
    def _has_bars(self) -> bool:
        return self._console.is_terminal and not self._loaded

    def _show(self, instance: str, completed: float, title: str) -> None:
        now = time.monotonic()
        self._since = self._since or now
        if not self._has_bars:
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
            self._tasks[instance] = self._bars.add_task(instance, total=1.0, title=title)
        self._bars.update(self._tasks[instance], completed=completed, title=title)

    def _line(self, instance: str, text: str) -> None:
        self._console.print(f"  {instance:12} {text}", markup=False, soft_wrap=True)
