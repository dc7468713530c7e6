"""Contract shape and decisions: answers of a baseline, and how far an engine agrees with them.

A baseline is the same model as it is meant to be, e.g. in 16 bits. Its answer is put behind the prompt, and the engine
is asked which token it would have chosen at each place: one early other choice does not change what follows.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from proxy.config import ConfigError
from proxy.settings import STRICT

Tokens = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class ReferenceAnswer:
    """To one prompt; both as token ids."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    prompt: Tokens
    answer: Tokens


@dataclass(frozen=True, slots=True)
class Reference:
    """All of them."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    model: str
    """The name by which the baseline served."""
    answers: Annotated[tuple[ReferenceAnswer, ...], Field(min_length=1)]
    version: Literal[1] = 1
    """Of this file's format."""


def dump(reference: Reference) -> str:
    """As JSON text with a final newline."""
    return _adapter().dump_json(reference).decode() + "\n"


def load(path: Path) -> Reference:
    """Read a file written by :func:`dump`; raises :class:`ConfigError` that says what is wrong with it."""
    try:
        return read(path.read_bytes())
    except OSError as exc:
        raise ConfigError(f"cannot read the reference answers {path} (reference.file): {exc.strerror}") from exc
    except ConfigError as exc:
        raise ConfigError(
            f"{path} holds no reference answers (reference.file): {exc}; `launcher baseline` writes such a file"
        ) from exc


def read(text: bytes) -> Reference:
    """What :func:`dump` made; raises :class:`ConfigError` that says what is wrong with it."""
    try:
        return _adapter().validate_json(text)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole file"
        raise ConfigError(f"{where}: {first['msg']}") from exc


def question(answer: ReferenceAnswer, model: str) -> bytes:
    """The body of the completion request that shows what the engine would have chosen."""
    prompt = [*answer.prompt, *answer.answer]
    body = {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 1}
    return json.dumps(body).encode()


def agreed(answer: ReferenceAnswer, told: dict[str, Any]) -> int:
    """At how many places the engine would choose the answer's token; raises :class:`ValueError` if it does not say."""
    try:
        places = told["choices"][0]["prompt_logprobs"][len(answer.prompt) :]
        ranks = [place[str(token)]["rank"] for place, token in zip(places, answer.answer, strict=True)]
    except (KeyError, IndexError, TypeError, ValueError) as exc:
        raise ValueError(f"it tells no log-probabilities of the prompt ({exc!r})") from exc
    return sum(rank == 1 for rank in ranks)


@cache
def _adapter() -> TypeAdapter[Reference]:
    return TypeAdapter(Reference)
