"""The folder where a deployment keeps its state, logs and files; one launcher holds it at a time."""

import asyncio
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path

import psutil
import tenacity
from pydantic import TypeAdapter, ValidationError

from launcher.errors import RunDirectoryError, StateError
from launcher.local.deployment import Deployment
from launcher.plan import Plan, PlannedFile, to_json
from proxy.config import ABOUT

_POLL = 1.0
"""Seconds between two looks whether it is still there."""
_LOOKS_PER_HOUR = 3600
_DEPLOYMENT = TypeAdapter(Deployment)


@cache
def _plan_type() -> TypeAdapter[Plan]:
    """Built when it is needed: most verbs do not, and start sooner."""
    return TypeAdapter(Plan)


class RunDirectory:
    """State (``state.json``), plan (``plan.json``), logs (``logs/<instance>.log``) and a lock in one folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = path / "lock"
        self._state = path / "state.json"
        self._plan = path / "plan.json"
        self._held: int | None = None

    def log(self, instance: str) -> Path:
        """The newest log file of an instance; older ones carry ``.1``, ``.2``..."""
        return self.path / "logs" / f"{instance}.log"

    @property
    def supervisor_log(self) -> Path:
        """Where a detached launcher prints."""
        return self.path / "logs" / "launcher.log"

    @property
    def proxy_config(self) -> Path:
        """What the proxy serves by, and follows; written by the plan."""
        return self.path / "proxy.json"

    @property
    def about(self) -> Path:
        """What the proxy tells people of the deployment."""
        return self.proxy_config.with_name(ABOUT)

    def logged_instances(self) -> Sequence[str]:
        """The instances that have a log, sorted."""
        return sorted(file.stem for file in (self.path / "logs").glob("*.log"))

    def create(self) -> None:
        """Make the folders; raises :class:`RunDirectoryError` when that is not allowed."""
        try:
            (self.path / "logs").mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        except OSError as exc:
            raise RunDirectoryError(
                f"cannot write to the run directory {self.path}: {exc.strerror}; choose another with --run-dir"
            ) from exc

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep every other launcher out for the time of the ``with``; released by the kernel if we are killed."""
        self.create()
        try:
            lock = self._lock.open("a+")
        except OSError as exc:
            raise RunDirectoryError(f"cannot write {self._lock}: {exc.strerror}; choose another --run-dir") from exc
        with lock:
            try:
                _acquire(lock.fileno())
            except BlockingIOError as exc:
                lock.seek(0)
                raise RunDirectoryError(
                    f"a launcher (pid {lock.read().strip() or 'unknown'}) already runs a deployment in {self.path}: "
                    "stop it with `launcher down`, or choose another --run-dir"
                ) from exc
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            self._held = lock.fileno()
            try:
                yield
            finally:
                self._held = None

    async def lost(self) -> None:
        """While it is held: until it is gone, or another launcher's; then raises :class:`RunDirectoryError`."""
        for looks in count(1):
            await asyncio.sleep(_POLL)
            if looks % _LOOKS_PER_HOUR == 0:
                self.freshen()
            if not self._is_ours():
                raise RunDirectoryError(
                    f"the run directory {self.path} was removed or replaced while the deployment ran: all of it was "
                    "stopped, since no other command could reach it any more; use `launcher down` before you remove it"
                )

    def _is_ours(self) -> bool:
        if self._held is None:
            return True
        try:
            return os.path.samestat(self._lock.stat(), os.fstat(self._held))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # of a file system that has trouble: no reason to stop anything
            return True

    def freshen(self) -> None:
        """Give its files the time of now: what has not changed for days is removed from ``/tmp`` by most systems."""
        with suppress(OSError):
            for path in (self.path, *self.path.iterdir()):
                os.utime(path)

    def holder(self) -> int | None:
        """The pid of the launcher that holds this directory now, or ``None``."""
        try:
            lock = self._lock.open()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise RunDirectoryError(f"cannot look into the run directory {self.path}: {exc.strerror}") from exc
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = lock.read()
                holder = int(text) if text.isdigit() else 0
                # Between taking the lock and writing its pid, a launcher shows the pid of the one before.
                return holder if psutil.pid_exists(holder) else None
            return None

    def running(self) -> Deployment:
        """What runs here; raises :class:`RunDirectoryError` when nothing does."""
        deployment = self.read_state() if self.holder() is not None else None
        if deployment is None:
            raise RunDirectoryError(
                f"nothing runs in {self.path}: start it with `launcher up`, or choose another --run-dir"
            )
        return deployment

    @contextmanager
    def alone(self, verb: str) -> Iterator[None]:
        """Only one command of this kind at a time, for the time of the ``with``."""
        try:
            opened = (self.path / f"{verb}.lock").open("a+")
        except OSError as exc:
            raise RunDirectoryError(f"cannot write {self.path / verb}.lock: {exc.strerror}") from exc
        with opened as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise RunDirectoryError(
                    f"another `launcher {verb}` is at work in {self.path}: wait for its end, and try again"
                ) from exc
            yield

    def write_plan(self, plan: Plan) -> None:
        """The plan and the files that it contains."""
        for file in (PlannedFile(str(self._plan), to_json(plan)), *plan.files):
            _replace(Path(file.path), file.content)

    def rewrite_plan(self, plan: Plan) -> None:
        """The plan alone, of a deployment that runs: its files have changed since."""
        _replace(self._plan, to_json(plan))

    def read_plan(self) -> Plan | None:
        """What was started here last; ``None`` when that cannot be read."""
        try:
            return _plan_type().validate_json(self._plan.read_bytes())
        except (OSError, ValidationError):
            return None

    def write_state(self, deployment: Deployment) -> None:
        """Readers see the old or the new state, never half of one."""
        if not self._is_ours():
            raise RunDirectoryError(f"cannot write {self._state}: the run directory was removed or replaced")
        _replace(self._state, _DEPLOYMENT.dump_json(deployment, indent=2).decode() + "\n")

    def read_state(self) -> Deployment | None:
        """What the last launcher wrote here, or ``None``."""
        try:
            return _DEPLOYMENT.validate_json(self._state.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as exc:
            raise StateError(
                f"{self._state} does not hold a deployment's state (another version's, or a full disk's): delete it"
            ) from exc


@tenacity.retry(
    # :meth:`RunDirectory.holder` has the lock for microseconds whenever somebody looks.
    retry=tenacity.retry_if_exception_type(BlockingIOError),
    wait=tenacity.wait_fixed(0.01),
    stop=tenacity.stop_after_delay(0.3),
    reraise=True,
)
def _acquire(lock: int) -> None:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _replace(path: Path, content: str) -> None:
    new = path.with_name(path.name + ".new")
    try:
        new.write_text(content)
        new.replace(path)
    except OSError as exc:
        raise RunDirectoryError(f"cannot write {path}: {exc.strerror}") from exc
