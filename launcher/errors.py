"""What can go wrong, as one tree. The command line prints the message and exits with the class's code.

LauncherError
├── ProfileError          3  the profile cannot be read or says something impossible
├── PlanError             4  the profile cannot become a plan on this machine
├── PreflightError        4  the plan would fail here; nothing was started
├── BaselineError         4  a baseline's answers cannot be had or kept
├── QuantizeError         4  a model cannot be quantized as asked, or its worker ended
├── MeasureError          4  a server cannot be asked, or what is to be measured is not said rightly
├── SecretError           4  a secret that an engine needs is missing, empty or cannot be read
├── ClusterError          4  no cluster, no Helm, or no such release: nothing was changed
│   └── UnseenError       4  its API server does not answer
├── RunDirectoryError     4  the run directory cannot be used, or is in use
│   └── StateError        4  its state cannot be read
├── InstanceDiedError     5  an engine or the proxy ended by itself
├── NotReadyError         6  an instance did not become ready in time
├── ReleaseError          7  Helm refuses a release, or one of its pods cannot start
├── ProofError            8  the KV cache does not get from prefill to decode
└── GateError             8  a quantized model did not pass its gate, and is not published

2 is a wrong command line; 1 is `status` when something is not healthy; 0 is success.
"""

import json
from collections.abc import Sequence


class LauncherError(Exception):
    """Base of all errors that are the user's to solve; the message says what happened, where, and the fix."""

    exit_code = 1
    log_tail: tuple[str, ...] = ()
    """The last lines of whatever failed, oldest first."""

    @property
    def messages(self) -> tuple[str, ...]:
        """One for each thing that is wrong."""
        return (str(self),)


class _Several(LauncherError):
    """Several things are wrong; all are reported at once."""

    def __init__(self, messages: Sequence[str]) -> None:
        self._messages = tuple(messages)
        super().__init__("\n".join(messages))

    @property
    def messages(self) -> tuple[str, ...]:
        """One for each thing that is wrong."""
        return self._messages


class ProfileError(_Several):
    """One or more faults in a profile, each already carrying its place; sorted by file and line.

    Each is one line that a terminal shows as it is, whatever the profile holds.
    """

    exit_code = 3

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__(sorted(dict.fromkeys(map(_shown, faults)), key=_by_line))


def _shown(text: str) -> str:
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def _by_line(fault: str) -> tuple[str, int]:
    file, _, rest = fault.partition(":")
    line = rest.partition(":")[0]
    return file, int(line) if line.isdigit() else 0


class PlanError(LauncherError):
    """The profile is well-formed but cannot become a plan."""

    exit_code = 4


class PreflightError(_Several):
    """Everything that would make this plan fail on this machine, found before anything was started."""

    exit_code = 4


class BaselineError(LauncherError):
    """The answers of a baseline cannot be had or kept."""

    exit_code = 4


class QuantizeError(LauncherError):
    """A model cannot be quantized as asked, or the worker that does it ended; nothing is published."""

    exit_code = 4

    def __init__(self, message: str, log_tail: Sequence[str] = ()) -> None:
        self.log_tail = tuple(log_tail)
        super().__init__(message)

    @property
    def messages(self) -> tuple[str, ...]:
        """One a line."""
        return tuple(str(self).splitlines())


class MeasureError(_Several):
    """Nothing can be measured: no server answers, or a workload or a report cannot be read; one message a fault."""

    exit_code = 4

    def __init__(self, *messages: str) -> None:
        super().__init__(messages)


class SecretError(_Several):
    """One or more secrets that engines need are missing, empty or cannot be read; no message has any of their text."""

    exit_code = 4


class RunDirectoryError(LauncherError):
    """The run directory is not writable, or another launcher holds it."""

    exit_code = 4


class StateError(RunDirectoryError):
    """The state in a run directory cannot be read."""


class ClusterError(LauncherError):
    """The cluster cannot be asked, Helm is missing, or there is no such release; nothing was changed."""

    exit_code = 4


class UnseenError(ClusterError):
    """The API server does not answer; it may do so later."""


class InstanceDiedError(LauncherError):
    """A process of the deployment ended by itself."""

    exit_code = 5

    def __init__(self, message: str, log_tail: Sequence[str] = ()) -> None:
        self.log_tail = tuple(log_tail)
        super().__init__(message)


class NotReadyError(LauncherError):
    """A process runs but did not become ready within its start budget."""

    exit_code = 6

    def __init__(self, message: str, log_tail: Sequence[str] = ()) -> None:
        self.log_tail = tuple(log_tail)
        super().__init__(message)


class ReleaseError(_Several):
    """Helm refuses a release, or waiting longer for its pods is of no use; what is installed stays."""

    exit_code = 7

    def __init__(self, messages: Sequence[str], log_tail: Sequence[str] = ()) -> None:
        self.log_tail = tuple(log_tail)
        super().__init__(messages)


class ProofError(LauncherError):
    """The evidence of a KV hand-over is missing, or speaks against it."""

    exit_code = 8


class GateError(LauncherError):
    """A quantized model did not pass its gate: nothing is published, the report says why."""

    exit_code = 8
