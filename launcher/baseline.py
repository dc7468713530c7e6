"""Asks a baseline fixed prompts and keeps its answers: with them the proxy compares engines (``proxy.reference``)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx

from launcher.errors import BaselineError
from launcher.trust import trust
from proxy.reference import Reference, ReferenceAnswer

PROMPTS = (
    "The capital of France is",
    "Translate to German: The weather is nice today.\nGerman:",
    "def fibonacci(n):\n    ",
    "Q: What is 17 times 6?\nA: 17 times 6 is",
    "List the planets of the solar system from the sun outwards:\n1.",
    "Once upon a time, in a small village by the sea,",
    'Complete the JSON: {"name": "Ada Lovelace", "born": 1815, "profession":',
    "Water boils at a temperature of",
    "Summarize in one sentence: Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.\nSummary:",
    "SELECT name FROM customers WHERE",
    "The opposite of hot is",
    "Dear Sir or Madam, I am writing to",
)
"""Short, of different kinds; records of one's own traffic judge better."""
_PATIENCE = 300.0


def record(url: str, prompts: Iterable[str], tokens: int, model: str | None, key: str | None = None) -> Reference:
    """The greedy answers of the server at ``url``, of so many tokens at most; ``key``: a client's, where one is needed.

    Raises :class:`BaselineError` when it does not answer, or answers something else than vLLM does.
    """
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    base = url.rstrip("/").removesuffix("/v1")
    with httpx.Client(base_url=base, trust_env=False, verify=trust(), timeout=_PATIENCE, headers=headers) as client:
        try:
            name = model or str(client.get("/v1/models").raise_for_status().json()["data"][0]["id"])
            return Reference(name, tuple(_answers(client, name, prompts, tokens)))
        except httpx.HTTPStatusError as exc:
            said = f"{exc.request.url} answered {exc.response.status_code}: {exc.response.text[:300]}"
            needs_key = exc.response.status_code == httpx.codes.UNAUTHORIZED
            raise BaselineError(f"{said}: give a client's key by --key" if needs_key else said) from exc
        except httpx.HTTPError as exc:
            raise BaselineError(f"{url} does not answer ({exc}): {_fix(exc)}") from exc
        except (KeyError, IndexError, TypeError, ValueError) as exc:
            raise BaselineError(f"{url} does not answer as vLLM 0.32 does ({exc!r})") from exc


def _fix(error: httpx.HTTPError) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "name the file of its authority in SSL_CERT_FILE"
    return "name the address of a running proxy or vLLM server, e.g. http://127.0.0.1:8000"


def _answers(client: httpx.Client, model: str, prompts: Iterable[str], tokens: int) -> Iterator[ReferenceAnswer]:
    for prompt in prompts:
        body = {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "return_token_ids": True}
        choice = client.post("/v1/completions", json=body).raise_for_status().json()["choices"][0]
        if choice["token_ids"]:
            yield ReferenceAnswer(tuple(choice["prompt_token_ids"]), tuple(choice["token_ids"]))


def read_prompts(file: Path) -> tuple[str, ...]:
    """One a line, empty lines left out; raises :class:`BaselineError`."""
    try:
        prompts = tuple(line for line in file.read_text().splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as exc:
        raise BaselineError(f"cannot read prompts from {file}: {exc}") from exc
    if not prompts:
        raise BaselineError(f"{file} has no prompts: write one a line")
    return prompts
