"""The launcher that runs a deployment takes orders of other commands: a socket in its run directory, a line each way.

The path is that of an open directory: a socket's own is at most 107 bytes long, a run directory's may be longer.
"""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from launcher.errors import InstanceDiedError, LauncherError, NotReadyError, RunDirectoryError

_NAME = "control.sock"
_ENDS = b"\n"


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for."""

    restart: str
    """The instance."""
    argv: tuple[str, ...] | None = None
    """An engine's new command line, from now on; ``None``: as it was."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it; nothing to say when it was done."""

    message: str = ""
    exit_code: int = 0
    log_tail: tuple[str, ...] = ()


_ORDER, _OUTCOME = TypeAdapter(Order), TypeAdapter(Outcome)


@asynccontextmanager
async def listening(
    directory: Path, follow: Callable[[Order], Awaitable[None]], warn: Callable[[str], None]
) -> AsyncIterator[None]:
    """Take orders for the time of the ``async with``; ``follow`` raises a :class:`LauncherError` to refuse one."""
    at_work: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError):  # whoever asked may have left
            outcome = await _outcome(await reader.readline(), follow)
            writer.write(_OUTCOME.dump_json(outcome) + _ENDS)
            await writer.drain()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(answer(reader, writer), name="order")
        at_work.add(task)
        task.add_done_callback(at_work.discard)

    try:
        with _address(directory) as address:
            server = await asyncio.start_unix_server(begin, sock=_bound(directory, address))
    except OSError as exc:  # a file system without sockets is no reason not to serve
        warn(f"cannot listen in {directory} ({exc.strerror}): `launcher restart` does not work for this deployment")
        yield
        return
    try:
        yield
    finally:
        server.close()
        for task in tuple(at_work):
            task.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)
        with suppress(OSError):
            (directory / _NAME).unlink()


def order(directory: Path, wanted: Order) -> None:
    """Have the launcher of this run directory do it, and wait; raises a :class:`LauncherError` as it says."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            with _address(directory) as address:
                connection.connect(address)
            connection.sendall(json.dumps(asdict(wanted)).encode() + _ENDS)
            said = connection.makefile("rb").readline()
        except OSError as exc:
            raise RunDirectoryError(
                f"the launcher in {directory} takes no orders ({exc.strerror}): it is still starting, or has ended; "
                "`launcher status` says which"
            ) from exc
    try:
        outcome = _OUTCOME.validate_json(said)
    except ValidationError as exc:
        raise RunDirectoryError(f"the launcher in {directory} ended meanwhile: see `launcher status`") from exc
    if outcome.exit_code:
        raise _error(outcome)


async def _outcome(line: bytes, follow: Callable[[Order], Awaitable[None]]) -> Outcome:
    try:
        await follow(_ORDER.validate_json(line))
    except ValidationError:
        return Outcome("the order is none that this launcher knows: is it of another version?", LauncherError.exit_code)
    except LauncherError as exc:
        return Outcome(str(exc), exc.exit_code, exc.log_tail if isinstance(exc, InstanceDiedError) else ())
    return Outcome()


def _error(outcome: Outcome) -> LauncherError:
    if outcome.exit_code == InstanceDiedError.exit_code:
        return InstanceDiedError(outcome.message, outcome.log_tail)
    if outcome.exit_code == NotReadyError.exit_code:
        return NotReadyError(outcome.message)
    error = LauncherError(outcome.message)
    error.exit_code = outcome.exit_code
    return error


def _bound(directory: Path, address: str) -> socket.socket:
    (directory / _NAME).unlink(missing_ok=True)  # of a launcher that was killed
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(address)
    (directory / _NAME).chmod(0o600)
    return bound


@contextmanager
def _address(directory: Path) -> Iterator[str]:
    opened = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{opened}/{_NAME}"
    finally:
        os.close(opened)
