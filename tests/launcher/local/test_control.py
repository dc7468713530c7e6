"""Orders that other commands give to the launcher that runs."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from launcher.errors import InstanceDiedError, LauncherError, NotReadyError, RunDirectoryError
from launcher.local.control import Order, listening, order


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Its path is longer than a socket's may be."""
    path = tmp_path / ("long-" * 20) / ("longer-" * 20)
    path.mkdir(parents=True)
    return path


async def nothing(_: Order) -> None:
    """Done."""


async def test_an_order_is_followed_and_its_end_waited_for(directory: Path):
    followed: list[Order] = []

    async def follow(wanted: Order) -> None:
        followed.append(wanted)

    async with listening(directory, follow, pytest.fail):
        await asyncio.to_thread(order, directory, Order("decode-0"))
        assert (directory / "control.sock").stat().st_mode & 0o777 == 0o600
    assert followed == [Order("decode-0")]
    assert not (directory / "control.sock").exists()


@pytest.mark.parametrize(
    "error",
    [InstanceDiedError("it died", ["last", "words"]), NotReadyError("too late"), RunDirectoryError("no such instance")],
)
async def test_what_went_wrong_comes_back_with_its_exit_code(directory: Path, error: LauncherError):
    async def follow(_: Order) -> None:
        raise error

    async with listening(directory, follow, pytest.fail):
        with pytest.raises(LauncherError, match=str(error)) as caught:
            await asyncio.to_thread(order, directory, Order("decode-0"))
    assert caught.value.exit_code == error.exit_code
    if isinstance(error, InstanceDiedError):
        assert isinstance(caught.value, InstanceDiedError)
        assert caught.value.log_tail == ("last", "words")


async def test_an_order_that_it_does_not_know_is_refused(directory: Path):
    async with listening(directory, nothing, pytest.fail):
        reader, writer = await asyncio.open_unix_connection(sock=connected(directory))
        writer.write(b'{"of": "another version"}\n')
        assert b"is it of another version?" in await reader.readline()
        writer.close()
        await writer.wait_closed()


def connected(directory: Path) -> socket.socket:
    connection, opened = socket.socket(socket.AF_UNIX), os.open(directory, os.O_PATH)
    try:
        connection.connect(f"/proc/self/fd/{opened}/control.sock")
    finally:
        os.close(opened)
    return connection


async def test_a_launcher_that_ends_leaves_orders_undone(directory: Path):
    began = asyncio.Event()

    async def follow(_: Order) -> None:
        began.set()
        await asyncio.Event().wait()

    async with listening(directory, follow, pytest.fail):
        asking = asyncio.create_task(asyncio.to_thread(order, directory, Order("decode-0")))
        await began.wait()
    with pytest.raises(RunDirectoryError, match="ended meanwhile"):
        await asking


def test_where_nobody_listens_it_is_said(directory: Path):
    with pytest.raises(RunDirectoryError, match="takes no orders"):
        order(directory, Order("decode-0"))


async def test_a_socket_of_a_launcher_that_was_killed_is_replaced(directory: Path):
    (directory / "control.sock").touch()
    async with listening(directory, nothing, pytest.fail):
        await asyncio.to_thread(order, directory, Order("decode-0"))


async def test_where_no_socket_can_be_the_deployment_goes_on(directory: Path):
    (directory / "control.sock").mkdir()
    warnings: list[str] = []
    async with listening(directory, nothing, warnings.append):
        pass
    assert "`launcher restart` does not work for this deployment" in warnings[0]
