"""Asks a baseline fixed prompts and keeps its answers: with them the proxy compares engines (``proxy.reference``)."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import httpx

from launcher.errors import BaselineError
from launcher.trust import trust
from proxy.config import ConfigError
from proxy.reference import Reference, ReferenceAnswer, dump, read

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
_SHOWN = 300
"""Letters of what a server says."""


def record(
    url: str, prompts: Iterable[str], tokens: int, model: str | None, key: Mapping[str, str] | None = None
) -> Reference:
    """The greedy answers of the server at ``url``, of so many tokens at most; ``key``: headers that allow it.

    Raises :class:`BaselineError` when it does not answer, or answers something else than vLLM does.
    """
    base = url.rstrip("/").removesuffix("/v1")
    with httpx.Client(base_url=base, trust_env=False, verify=trust(), timeout=_PATIENCE, headers=key) as client:
        try:
            name = model or str(client.get("/v1/models").raise_for_status().json()["data"][0]["id"])
            found = Reference(name, tuple(_answers(client, name, prompts, tokens)))
            return read(json.dumps(asdict(found)).encode())  # what cannot be read is not kept
        except httpx.HTTPStatusError as exc:
            status, said = exc.response.status_code, exc.response.text[:_SHOWN]
            fix = ": give a client's key by --key" if status == httpx.codes.UNAUTHORIZED else ""
            raise BaselineError(f"{exc.request.url} answered {status}{fix}: {said}") from exc
        except httpx.HTTPError as exc:
            raise BaselineError(f"{url} does not answer ({exc!r}): {_fix(exc)}") from exc
        except (KeyError, IndexError, TypeError, ValueError, RecursionError, ConfigError) as exc:
            said = f"{type(exc).__name__}: {exc}"[:_SHOWN]
            raise BaselineError(
                f"{url} does not answer as vLLM 0.32 does ({said}): name the address of a proxy or vLLM server"
            ) from exc


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


def keep(reference: Reference, file: Path) -> None:
    """In a file, whole or not at all: what was there stays when there is no room; raises :class:`BaselineError`."""
    text = dump(reference)
    try:
        if file.exists() and not file.is_file():  # e.g. a pipe
            file.write_text(text)
            return
        target = file.resolve()
        new = target.with_name(f"{target.name}.new")
        try:
            new.write_text(text)
            new.replace(target)
        finally:
            new.unlink(missing_ok=True)
    except OSError as exc:
        raise BaselineError(f"cannot write {file}: {exc.strerror}") from exc


def read_prompts(file: Path) -> tuple[str, ...]:
    """One a line, empty lines left out; raises :class:`BaselineError`."""
    try:
        prompts = tuple(line for line in file.read_text().splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as exc:
        raise BaselineError(f"cannot read prompts from {file}: {exc}") from exc
    if not prompts:
        raise BaselineError(f"{file} has no prompts: write one a line")
    return prompts
