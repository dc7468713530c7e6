"""Decision: lines of JSON with real requests -> requests."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from launcher.errors import MeasureError
from launcher.measure.request import Request

_PARAMETERS = frozenset(
    """
    max_tokens max_completion_tokens min_tokens temperature top_p top_k min_p seed stop stop_token_ids ignore_eos
    presence_penalty frequency_penalty repetition_penalty length_penalty logit_bias logprobs top_logprobs n
    response_format structured_outputs tools tool_choice parallel_tool_calls chat_template_kwargs reasoning_effort
    add_generation_prompt echo suffix skip_special_tokens
    """.split()  # noqa: SIM905  # a list of thirty quoted words is no better to read
)
"""Of a request's body that are sent as they are; whatever else a line has does not matter."""
_MOST_SHOWN = 10


def requests_of(lines: Iterable[str], name: str, max_tokens: int) -> tuple[Request, ...]:
    """In the order of their times, where all have some. ``name``: of the file.

    Raises :class:`MeasureError` with one message for each line that cannot be sent, or when there is none.
    """
    found: list[Request] = []
    faults: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(_request(_sendable(json.loads(line)), max_tokens))
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as exc:
            faults.append(f"{name}:{number}: {exc.args[0] if exc.args else type(exc).__name__}")
    if faults:
        more = len(faults) - _MOST_SHOWN
        raise MeasureError(*faults[:_MOST_SHOWN], *([f"{name}: {more} more lines are at fault"] if more > 0 else []))
    if not found:
        raise MeasureError(f"{name} has no requests: write one JSON object a line, with messages or prompt")
    return _in_time(found)


def _sendable(record: object) -> object:
    """As it is; Python reads more than JSON may hold, and no client could send that."""
    try:
        json.dumps(record, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError as exc:
        raise ValueError(f"half a character, {exc.object[exc.start]!a}: write both of its surrogates") from exc
    except ValueError as exc:
        raise ValueError("a number is NaN or beyond all bounds: write a finite one, or leave it out") from exc
    return record


def _request(record: object, max_tokens: int) -> Request:
    if not isinstance(record, dict):
        raise ValueError('write an object, e.g. {"messages": [{"role": "user", "content": "..."}]}')
    body: dict[str, Any] = {name: value for name, value in record.items() if name in _PARAMETERS}
    if not {"max_tokens", "max_completion_tokens"}.intersection(body):
        body["max_tokens"] = max_tokens
    at, answer = _time(record), record.get("answer")
    if answer is not None and not isinstance(answer, str):
        raise ValueError(f"answer: write a text, not {json.dumps(answer)[:80]}")
    if "messages" in record:
        return Request("chat/completions", {**body, "messages": _asked(record["messages"])}, at=at, answer=answer)
    if isinstance(record.get("prompt"), str | list) and record["prompt"]:
        return Request("completions", {**body, "prompt": record["prompt"]}, at=at, answer=answer)
    raise ValueError("it has neither messages nor prompt")


def _asked(messages: object) -> list[Any]:
    """Without the answer, where it was recorded, too."""
    if not isinstance(messages, list) or not all(isinstance(each, dict) and "role" in each for each in messages):
        raise ValueError('messages: write a list of objects with a role, e.g. [{"role": "user", "content": "..."}]')
    asked = messages[:-1] if messages and messages[-1]["role"] == "assistant" else messages
    if not asked:
        raise ValueError("messages: there is nothing but an answer")
    return asked


def _time(record: Mapping[str, Any]) -> float | None:
    """Seconds since some time that is the same for all lines."""
    told = record.get("at", record.get("timestamp"))
    if told is None:
        return None
    if isinstance(told, int | float) and not isinstance(told, bool):
        return float(told)
    try:
        return datetime.fromisoformat(told).timestamp()
    except (TypeError, ValueError) as exc:
        raise ValueError(
            f"at, timestamp: write seconds or a time as in 2026-01-31T12:00:00Z, not {json.dumps(told)[:80]}"
        ) from exc


def _in_time(found: list[Request]) -> tuple[Request, ...]:
    times = [each.at for each in found if each.at is not None]
    if len(times) < len(found):
        return tuple(found)
    first = min(times)
    shifted = [Request(each.route, each.body, each.headers, (each.at or 0.0) - first, each.answer) for each in found]
    return tuple(sorted(shifted, key=lambda each: each.at or 0.0))
