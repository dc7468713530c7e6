"""The HTTP server of one process: uvicorn's, with an end that lets running requests finish.

After the first signal the address stays open: balancers still ask ``/ready``, new work is served for a while, if that
is configured, and then refused with an answer instead of a refused connection. The process ends as soon as nothing
runs any more, or when its time is up; then what still runs is told so, in the answer. A second signal takes the time
away.
"""

import asyncio
import logging
import socket
import ssl
import time
from types import FrameType
from typing import Literal

import uvicorn
from starlette.types import ASGIApp

from proxy.admission import Admission
from proxy.app import Apps
from proxy.protocol import Protocol

logger = logging.getLogger(__name__)

LAST_WORDS = 1
"""Seconds in which answers that are broken off can still be sent."""


_KEEP_ALIVE = 75
"""Seconds; longer than clients and balancers keep idle connections, so that they close first."""


def options(
    app: ASGIApp, tls: ssl.SSLContext | None = None, *, lifespan: Literal["on", "off"] = "on"
) -> uvicorn.Config:
    """How an application is served."""
    return uvicorn.Config(
        app,
        http=Protocol,
        ssl_context_factory=None if tls is None else lambda *_: tls,
        access_log=False,
        log_config=None,
        log_level=logging.WARNING,
        ws="none",
        lifespan=lifespan,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=LAST_WORDS,
        timeout_keep_alive=_KEEP_ALIVE,
    )


_PARTING = (b"connection", b"close")
"""Header of the last answer on a connection; that of refusals says so itself."""


class Server(uvicorn.Server):
    """Serves until a signal, for ``linger`` seconds more what comes, and then for up to ``patience`` seconds what runs.

    ``admin`` listens for those who operate the proxy, if they have an address of their own.
    """

    def __init__(
        self,
        apps: Apps,
        tls: ssl.SSLContext | None,
        admin: socket.socket | None,
        admission: Admission,
        *,
        linger: float,
        patience: float,
    ) -> None:
        super().__init__(options(apps.public, tls))
        self._admin_app = apps.admin
        self._admin = admin
        self._admission = admission
        self._linger = linger
        self._patience = patience
        self._until: float | None = None
        self._signals = 0
        self._deadline = 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self._admin is not None and self._admin_app is not None:
            await self._serve_admin(self._admin_app, self._admin)
        for listener in sockets or ():
            logger.info("listening on %s", address_of(listener, "https" if self.config.is_ssl else "http"))

    async def _serve_admin(self, app: ASGIApp, listener: socket.socket) -> None:
        config = options(app, lifespan="off")
        config.load()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Protocol(config, self.server_state, app_state={}, _loop=loop), sock=listener
        )
        self.servers.append(server)
        logger.info("operators are answered on %s", address_of(listener, "http"))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM or SIGINT has come, in the middle of anything: the next tick deals with it."""
        self._signals += 1
        self._admission.closing = True

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to end now."""
        stopped = await super().on_tick(counter)
        if stopped or not self._signals:
            return stopped
        if self._until is None:
            self._until = time.monotonic() + self._linger
            if self._linger:
                logger.info("asked to stop: serving what comes for %g s", self._linger)
                self._part_with_clients()
        if self._signals == 1 and time.monotonic() < self._until:
            return False
        running = self.server_state.tasks
        if not self._admission.closed:
            self._admission.close()
            for headers in self._headers:
                headers[:] = [each for each in headers if each != _PARTING]
            self._deadline = time.monotonic() + self._patience
            logger.info("asked to stop: running requests (%d) may go on for %g s", len(running), self._patience)
        if not running:
            logger.info("no request is running any more")
            return True
        if self._signals == 1 and time.monotonic() < self._deadline:
            return False
        logger.warning("breaking off %d requests that are still running", len(running))
        for task in tuple(running):
            task.cancel()
        return True

    @property
    def _headers(self) -> tuple[list[tuple[bytes, bytes]], ...]:
        """Of every answer: now, and those of which the server makes them anew every second."""
        return self.server_state.default_headers, self.config.encoded_headers

    def _part_with_clients(self) -> None:
        """Each connection ends with its next answer: the client comes back to another proxy."""
        for headers in self._headers:
            headers.append(_PARTING)


def address_of(listener: socket.socket, scheme: str) -> str:
    """Where it listens, as a URL."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
