"""Looks at the metrics of one engine, once."""

import httpx

from launcher.advice.window import Reading, read


async def look(client: httpx.AsyncClient, url: str, patience: float) -> Reading | None:
    """``None`` when it does not answer properly within so many seconds: it starts again, or is busy."""
    try:
        answer = await client.get(url, timeout=patience)
        return read(answer.text) if answer.status_code == httpx.codes.OK else None
    except (httpx.HTTPError, ValueError):
        return None
