"""Asks a served model over HTTP, several questions at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import httpx
import tenacity

from launcher.errors import QuantizeError

T = TypeVar("T")
R = TypeVar("R")
Tell = Callable[[str, int, int], None]
"""Progress: what is done, how much of it, of how much."""

CONCURRENCY = 4
PATIENCE = 600.0
"""Seconds for one answer; on a CPU, a long record of a large model takes minutes."""
_NO_NUMBERS = "not JSON compliant"
"""What vLLM answers, as if the request were to blame, when log-probabilities are NaN."""
_TRIES = 3
_SHOWN = 300
"""Letters of what a server says."""


class BrokenAnswerError(Exception):
    """The engine lives, but failed to compute this answer or to write it down."""


class Asker:
    """Asks one model. Use it as an asynchronous context manager."""

    def __init__(self, url: str, model: str) -> None:
        self._model = model
        self._url = f"{url}/v1/completions"
        self._client = httpx.AsyncClient(trust_env=False, timeout=PATIENCE)

    async def __aenter__(self) -> "Asker":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.aclose()

    async def choices(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The choices of a completion, in the order of its prompts.

        Raises :class:`BrokenAnswerError` when the engine fails at it, :class:`QuantizeError` when it does not answer or
        refuses.
        """
        response = await self._post({"model": self._model, "temperature": 0, **body})
        if response.status_code == httpx.codes.BAD_REQUEST and _NO_NUMBERS in response.text:
            raise BrokenAnswerError(f"the engine has no numbers to tell, but NaN: {_said(response)}")
        if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise BrokenAnswerError(f"the engine answered {response.status_code}: {_said(response)}")
        if response.status_code != httpx.codes.OK:
            raise QuantizeError(
                f"{self._url} refused a request with {response.status_code}: {_said(response)}; if it is too long, "
                "raise max_model_len or shorten the records"
            )
        try:
            return sorted(response.json()["choices"], key=lambda choice: int(choice["index"]))
        except (KeyError, TypeError, ValueError) as exc:
            raise QuantizeError(f"{self._url} does not answer as vLLM 0.32 does ({exc!r}): {_said(response)}") from exc

    async def _post(self, body: dict[str, Any]) -> httpx.Response:
        patiently = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(httpx.TransportError),
            wait=tenacity.wait_exponential(multiplier=0.1, max=2),
            stop=tenacity.stop_after_attempt(_TRIES),
            reraise=True,
        )
        try:
            return await patiently(self._client.post, self._url, json=body)
        except httpx.HTTPError as exc:
            raise QuantizeError(f"{self._url} does not answer ({exc!r}, {_TRIES} times)") from exc


async def all_of(
    ask: Callable[[T], Awaitable[R]],
    questions: Iterable[T],
    title: str,
    tell: Tell,
    concurrency: int = CONCURRENCY,
    *,
    goes_on: Callable[[int], bool] = lambda _: True,
) -> list[R]:
    """The answers, in the order of the questions; the first error ends all.

    ``goes_on`` is asked before each question, with the number of those before it; ``False`` leaves the rest out.
    """
    asked = list(questions)
    answers: dict[int, R] = {}
    left = iter(enumerate(asked))

    async def work() -> None:
        for number, question in left:
            if not goes_on(number):
                return
            answers[number] = await ask(question)
            tell(title, len(answers), len(asked))

    tell(title, 0, len(asked))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except ExceptionGroup as exc:
        raise exc.exceptions[0] from None
    return [answers[number] for number in sorted(answers)]


def _said(response: httpx.Response) -> str:
    return response.text[:_SHOWN]
