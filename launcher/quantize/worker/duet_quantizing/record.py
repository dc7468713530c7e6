"""One line of a calibration file."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""How JSON writes a surrogate; alone it is no character."""
FORMS = '{"messages": [{"role": ..., "content": ...}, ...]}, {"text": ...} or {"prompt": ..., "completion": ...}'


@dataclass(frozen=True, slots=True)
class Record:
    """A conversation, or plain text."""

    line: int
    """In its file, from 1."""
    messages: tuple[Message, ...] = ()
    tools: tuple[Any, ...] = ()
    text: str = ""
    """Of a plain one, the prompt included."""
    prompt: int = 0
    """Characters at the start of ``text`` that were asked; the rest was answered. 0: nothing is known of it."""

    @property
    def content(self) -> bytes:
        """What makes it the same record as another; ids, times and the like beside it do not."""
        return json.dumps([self.messages, self.tools, self.text], sort_keys=True, ensure_ascii=True).encode()

    @property
    def words(self) -> str:
        """What people and models wrote, system prompts apart: these are the same in many records."""
        said = [_plain(each["content"]) for each in self.messages if each["role"] != "system"]
        return "\n".join([*said, self.text] if self.text else said)

    @property
    def everything(self) -> str:
        """All text of it."""
        return "\n".join([*(_plain(each["content"]) for each in self.messages), self.text])


def parsed(raw: bytes) -> Any:
    """What a line of JSON says; raises :class:`ValueError` that says what is wrong, without any of its text."""
    try:
        told: Any = json.loads(raw.strip().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    except json.JSONDecodeError as exc:
        raise ValueError(f"not JSON: {exc.msg.removesuffix(' at')} at column {exc.colno}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _HALF.search(raw) and not _is_text(told):
        raise ValueError("has half a surrogate pair, which is no text")
    return told


def read(line: int, raw: bytes) -> Record:
    """A record of a line; raises :class:`ValueError` that says what is wrong, without any of its text."""
    told = parsed(raw)
    if not isinstance(told, Mapping):
        raise ValueError("not a JSON object")
    if "messages" in told:
        tools = told.get("tools") or []
        if not isinstance(tools, list):
            raise ValueError("tools is no list")
        return Record(line, messages=conversation(told["messages"]), tools=tuple(tools))
    if isinstance(told.get("text"), str):
        return Record(line, text=told["text"])
    if isinstance(told.get("prompt"), str):
        answer = told.get("completion")
        return Record(
            line, text=told["prompt"] + (answer if isinstance(answer, str) else ""), prompt=len(told["prompt"])
        )
    raise ValueError("has none of: messages, text, prompt")


def _is_text(told: object) -> bool:
    """Whether all of it can be encoded, as tokenizers need it."""
    try:
        json.dumps(told, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def conversation(told: object) -> tuple[Message, ...]:
    """Messages as chat templates take them; raises :class:`ValueError`."""
    if not isinstance(told, list) or not told:
        raise ValueError("messages is no list of messages")
    return tuple(_message(number, each) for number, each in enumerate(told, 1))


def _message(number: int, told: object) -> Message:
    if not isinstance(told, Mapping) or not isinstance(told.get("role"), str):
        raise ValueError(f"message {number} has no role")
    message = {**told, "content": _content(number, told.get("content"))}
    if isinstance(calls := told.get("tool_calls"), list):
        message["tool_calls"] = [_call(each) for each in calls]
    return message


def _content(number: int, told: object) -> str:
    if told is None:
        return ""
    if isinstance(told, list) and all(isinstance(part, Mapping) for part in told):
        if any(part.get("type") != "text" for part in told):
            raise ValueError(f"message {number} has a part that is no text, which cannot be calibrated with")
        return "".join(str(part.get("text", "")) for part in told)
    if not isinstance(told, str):
        raise ValueError(f"the content of message {number} is no text")
    return told


def _call(told: object) -> object:
    """Templates want arguments as an object; the API has them as JSON text."""
    if not isinstance(told, Mapping) or not isinstance(function := told.get("function"), Mapping):
        return told
    try:
        return {**told, "function": {**function, "arguments": json.loads(function["arguments"])}}
    except (KeyError, TypeError, ValueError):
        return told


def _plain(content: object) -> str:
    return content if isinstance(content, str) else ""
