"""The doctor asks what is no proxy, or one that has gone wrong."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from rich.console import Console

from launcher.doctor import look, report
from launcher.doctor.examine import examine
from launcher.doctor.look import look_at_proxy
from launcher.doctor.sight import Sight
from tests.fakes.engine import FakeEngine

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
Write = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(write: Write) -> AsyncIterator[str]:
    """Answers every request by what is written; its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await write(writer)
        except OSError:
            pass  # nobody listens any more
        finally:
            writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


def told(sight: Sight, capsys: pytest.CaptureFixture[str]) -> str:
    """To people."""
    report.text(Console(highlight=False, width=200), examine(sight), sight)
    return capsys.readouterr().out


async def test_another_program_is_not_taken_for_a_healthy_proxy():
    async with FakeEngine() as engine:
        sight = await look_at_proxy(engine.url, 0, {})
    assert [finding.problem.id for finding in examine(sight)] == ["target-missing"]
    assert f"{engine.url}/metrics tells no metric of a proxy" in sight.not_seen[0]


async def test_a_page_without_an_end_is_given_up(capsys):
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(_HEAD)
        while True:
            writer.write(b"# nothing\n" * 10_000)
            await writer.drain()

    async with server(endless) as url:
        sight = await look_at_proxy(url, 0, {})
    assert f"the proxy does not answer at {url}/metrics (it tells more than 16 MiB)" in told(sight, capsys)


async def test_a_page_that_drips_is_given_up(monkeypatch, capsys):
    monkeypatch.setattr(look, "_PATIENCE", 0.2)

    async def dripping(writer: asyncio.StreamWriter) -> None:
        writer.write(_HEAD)
        while True:
            writer.write(b"#")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with server(dripping) as url:
        sight = await look_at_proxy(url, 0, {})
    assert f"the proxy does not answer at {url}/metrics (no whole answer within 0.2 s)" in told(sight, capsys)


async def test_what_a_server_says_gives_no_orders_to_the_terminal_and_is_cut_off(capsys):
    async def shouting(writer: asyncio.StreamWriter) -> None:
        writer.write(_HEAD + b'duet_instance_healthy{engine="\x1b[31mred\x07"} 0\n' + b"\x1b[2J" * 1000 + b"\n")

    async with server(shouting) as url:
        sight = await look_at_proxy(url, 0, {})
    text = told(sight, capsys)
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert max(map(len, text.splitlines())) < 400


async def test_names_of_engines_give_no_orders_to_the_terminal(capsys):
    async def naming(writer: asyncio.StreamWriter) -> None:
        writer.write(_HEAD + b'duet_instance_healthy{engine="\x1b[31mred"} 0\n')

    async with server(naming) as url:
        text = told(await look_at_proxy(url, 0, {}), capsys)
    assert " [31mred: " in text
    assert "\x1b" not in text


async def test_numbers_that_are_none_are_not_judged(capsys):
    page = (
        b'duet_requests_total{outcome="failed"} +Inf\nduet_requests_total{outcome="ok"} 5\n'
        b'duet_alert_threshold{alert="failed_share"} 0.1\nduet_alert_threshold{alert="ttft"} -Inf\n'
        b'duet_ttft_seconds_bucket{le="+Inf"} 3\nduet_ttft_seconds_bucket{le="1"} 2\n'
    )

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(_HEAD + page)

    async with server(answer) as url:
        sight = await look_at_proxy(url, 0, {})
    assert examine(sight) == ()
