"""Decision: what of a request lets expect how many draft tokens will be accepted: its task, and its temperature."""

import json
from collections.abc import Iterable
from hashlib import sha256

from proxy.completion import Completion
from proxy.headers import value_of

_DEFAULT_TEMPERATURE = 1.0
"""vLLM's, unless a model brings its own."""
_SYSTEM = ("system", "developer")


def temperature_of(completion: Completion) -> float:
    """As the request gives it."""
    given = completion.document.get("temperature")
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return float(given) if is_number else _DEFAULT_TEMPERATURE  # type: ignore[arg-type]


def task_of(completion: Completion, headers: Iterable[tuple[bytes, bytes]], header: bytes, client: str | None) -> str:
    """As the header names it; else whoever asks the same model with the same system prompt has the same task."""
    if (named := value_of(headers, header)) is not None:
        return f"named {named}"
    document = completion.document
    told = [document.get("system"), document.get("instructions"), _first_message(document.get("messages"))]
    digest = sha256(json.dumps(told, sort_keys=True, default=str).encode(errors="surrogatepass")).hexdigest()[:16]
    return f"client {client} model {document.get('model')} system {digest}"


def _first_message(messages: object) -> object:
    """The system prompt of a chat."""
    first = messages[0] if isinstance(messages, list) and messages else None
    return first.get("content") if isinstance(first, dict) and first.get("role") in _SYSTEM else None
