"""Processes of a launcher that was killed: they end by themselves, a new deployment waits for that."""

import psutil
import tenacity

from launcher.errors import RunDirectoryError
from launcher.local.child import KEEPER
from launcher.local.deployment import Deployment
from launcher.local.keeper import end_marked

_PATIENCE = 15.0
"""Seconds; keepers end everything within 4."""


async def wait_until_gone(deployment: Deployment | None) -> None:
    """Until no keeper that ``deployment`` names is left; raises :class:`RunDirectoryError` naming those that stay."""
    pids = [instance.keeper_pid for instance in deployment.instances if instance.keeper_pid] if deployment else []

    async def left() -> list[int]:
        return [pid for pid in pids if _is_keeper(pid)]

    patiently = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_result(bool),
        wait=tenacity.wait_fixed(0.1),
        stop=tenacity.stop_after_delay(_PATIENCE),
    )
    try:
        await patiently(left)
        if deployment is not None:
            end_marked(deployment.mark)
    except tenacity.RetryError as exc:
        raise RunDirectoryError(
            f"processes of an earlier launcher do not end: pids {', '.join(map(str, exc.last_attempt.result()))}; look "
            "what they wait for, end them with kill -9, and start again"
        ) from None


def _is_keeper(pid: int) -> bool:
    """A pid may belong to somebody else by now."""
    try:
        return KEEPER in psutil.Process(pid).cmdline()
    except psutil.Error:
        return False
