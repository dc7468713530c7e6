"""Asks a server what it is."""

from collections.abc import Mapping

import httpx

from launcher.errors import MeasureError
from launcher.measure.driver import certificates
from launcher.measure.target import Engine, Target

_PATIENCE = 10.0
_SHOWN = 200


async def found(url: str, headers: Mapping[str, str], model: str | None) -> Target:
    """The server there; raises :class:`MeasureError` when it does not answer, or has no model or several.

    Where its metrics are to be read without a key they are: of a Duet proxy all engines', else its own.
    """
    base = url.rstrip("/").removesuffix("/v1")
    async with httpx.AsyncClient(trust_env=False, verify=certificates(base), timeout=_PATIENCE) as client:
        name = await _model(client, base, headers) if model is None else model
        page = f"{base}/metrics/engines"
        if await _answers(client, page):
            return Target(base, base, name, headers, engine_metrics=page)
        own = (Engine("server", "aggregated", f"{base}/metrics"),) if await _answers(client, f"{base}/metrics") else ()
        return Target(base, base, name, headers, own)


async def _model(client: httpx.AsyncClient, base: str, headers: Mapping[str, str]) -> str:
    try:
        answer = await client.get(f"{base}/v1/models", headers=headers)
        if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise MeasureError(f"{base} asks for a key: give a client's key by --key")
        models = [each["id"] for each in answer.raise_for_status().json()["data"] if each.get("parent") is None]
    except httpx.HTTPError as exc:
        raise MeasureError(
            f"{base} does not answer ({type(exc).__name__}: {exc}): name the address of a running server, e.g. "
            "http://127.0.0.1:8000"
        ) from exc
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise MeasureError(
            f"{base}/v1/models does not answer as OpenAI's API does ({type(exc).__name__}: {exc})"[:_SHOWN]
            + ": name the address of a proxy or vLLM server, or a model by --model-name"
        ) from exc
    if not models:
        raise MeasureError(f"{base} has no model: name one by --model-name")
    return str(models[0])


async def _answers(client: httpx.AsyncClient, page: str) -> bool:
    """Whether engines' metrics are there."""
    try:
        answer = await client.get(page)
    except httpx.HTTPError:
        return False
    return answer.status_code == httpx.codes.OK and ("vllm:" in answer.text or "duet_engine" in answer.text)
