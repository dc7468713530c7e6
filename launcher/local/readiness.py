"""Waits until a server answers."""

import httpx
import tenacity

_POLL = 0.25
"""Seconds between two questions."""


class _NotYetError(Exception):
    """It answered, but not with 200."""


async def ready(client: httpx.AsyncClient, url: str) -> None:
    """Until ``GET url`` answers 200; asks for ever, the caller sets the limit."""
    async for attempt in tenacity.AsyncRetrying(
        wait=tenacity.wait_fixed(_POLL),
        retry=tenacity.retry_if_exception_type((httpx.TransportError, _NotYetError)),
    ):
        with attempt:
            response = await client.get(url)
            if response.status_code != httpx.codes.OK:
                raise _NotYetError
