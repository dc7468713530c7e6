"""The proxy as a program of its own: what signals and several processes do can be seen on no other."""

import asyncio
import re
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from proxy.config import ProxyConfig, dump
from proxy.settings import Canary


class Program:
    """A running proxy and a client of it."""

    def __init__(self, process: asyncio.subprocess.Process, client: httpx.AsyncClient) -> None:
        self.client = client
        self.log = ""
        """What it has said, as far as :meth:`said` and :meth:`end` have read."""
        self._process = process

    @property
    def pid(self) -> int:
        """Of the first process."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    async def said(self, pattern: str) -> re.Match[str]:
        """Wait for a line in which this expression is found."""
        assert self._process.stderr is not None
        while line := (await asyncio.wait_for(self._process.stderr.readline(), 60)).decode():
            self.log += line
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"it ended and never said {pattern!r}:\n{self.log}")

    async def end(self) -> int:
        """Wait for its end; the exit code."""
        _, rest = await asyncio.wait_for(self._process.communicate(), 60)
        self.log += rest.decode()
        assert self._process.returncode is not None
        return self._process.returncode


@asynccontextmanager
async def running(
    config: ProxyConfig, folder: Path, *, trusted: str | None = None, canaries: bool = False
) -> AsyncIterator[Program]:
    """Starts the program on a free port and waits until it listens; the end kills it if it still runs.

    ``trusted`` is the file of a certificate authority that the client trusts. Without ``canaries`` the program sends
    none, as most tests wait for what engines see.
    """
    if not canaries:
        config = replace(config, settings=replace(config.settings, canary=Canary(enabled=False)))
    file = folder / "proxy.json"
    file.write_text(dump(config))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", "--config", str(file), "--port", "0"),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        verify = True if trusted is None else ssl.create_default_context(cafile=trusted)
        async with httpx.AsyncClient(verify=verify, timeout=60, trust_env=False) as client:
            program = Program(process, client)
            client.base_url = httpx.URL((await program.said(r"listening on ([^\s\"]+)"))[1])
            yield program
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
