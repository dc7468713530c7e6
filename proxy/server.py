"""The HTTP server of one process: uvicorn's, with an end that lets running requests finish.

After the first signal the address stays open: balancers still ask ``/ready``, and new work is refused with an answer
instead of a refused connection. The process ends as soon as nothing runs any more, or when its time is up; then what
still runs is told so, in the answer. A second signal takes the time away.
"""

import logging
import socket
import time
from types import FrameType

import uvicorn

from proxy.admission import Admission

logger = logging.getLogger(__name__)

LAST_WORDS = 1
"""Seconds in which answers that are broken off can still be sent."""


class Server(uvicorn.Server):
    """Serves until a signal, and then for up to ``patience`` seconds what runs."""

    def __init__(self, config: uvicorn.Config, admission: Admission, patience: float) -> None:
        super().__init__(config)
        self._admission = admission
        self._patience = patience
        self._signals = 0
        self._deadline = 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            logger.info("listening on http://%s:%d", f"[{host}]" if ":" in host else host, port)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM or SIGINT has come, in the middle of anything: the next tick deals with it."""
        self._signals += 1

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to end now."""
        stopped = await super().on_tick(counter)
        if stopped or not self._signals:
            return stopped
        running = self.server_state.tasks
        if not self._admission.closed:
            self._admission.close()
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
