"""Tells how far a deployment is that is started to be measured."""

from launcher.local.deployment import Deployment, State
from launcher.measure.telling import Tell


class Starting:
    """A :class:`launcher.local.supervisor.Reporter` that tells how many instances are ready."""

    def __init__(self, name: str, tell: Tell) -> None:
        self._name, self._tell = name, tell

    def changed(self, deployment: Deployment) -> None:
        """Some instance's state changed."""
        if not deployment.ready:
            ready = sum(each.state is State.READY for each in deployment.instances)
            self._tell(f"starting {self._name}", ready, len(deployment.instances))

    def warn(self, text: str) -> None:
        """Something that somebody should look at, but that goes on."""
        self._tell(f"warning: {text}", 0, 0)

    def stopping(self) -> None:
        """From now on everything is being stopped."""
        self._tell(f"stopping {self._name}", 0, 0)
