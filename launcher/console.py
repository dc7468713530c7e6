"""What the launcher shows while a deployment starts and runs: live bars on a terminal, plain lines elsewhere."""

from rich.console import Console

from launcher.bars import Bars
from launcher.loading import Loading
from launcher.local.deployment import Deployment, InstanceState, State


class LoadReporter:
    """A :class:`launcher.local.supervisor.Reporter` for people."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Bars(console)
        self._seen: dict[str, InstanceState] = {}

    def changed(self, deployment: Deployment) -> None:
        """Some instance's state changed."""
        for now in deployment.instances:
            before = self._seen.get(now.name, InstanceState(now.name, now.role, now.url))
            self._seen[now.name] = now
            if now.waits_for and now.waits_for != before.waits_for:
                self._bars.show(now.name, 0.0, f"waits for {now.waits_for}")
            elif now.loading is not None and now.loading != before.loading:
                self._load(now.name, before.loading, now.loading)
            elif before.state is now.state:
                continue
            elif now.state is State.READY:
                self._bars.show(now.name, 1.0, "ready")
            elif now.state in {State.RESTARTING, State.FAILED}:
                self._bars.line(now.name, f"{now.state}: {now.reason}")
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
        self._bars.close()

    def _load(self, instance: str, before: Loading | None, now: Loading) -> None:
        if self._bars.live or before is None or before.title != now.title:  # a line for each piece would be too many
            self._bars.show(instance, now.fraction, str(now))
