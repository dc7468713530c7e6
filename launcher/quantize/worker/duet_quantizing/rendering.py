"""Makes tokens of records, as the engine does of requests."""

from collections.abc import Sequence
from typing import Any

from .record import Message, Record
from .telling import RefusedError


class RenderError(Exception):
    """A chat template refuses a conversation."""


class Renderer:
    """The model's tokenizer and chat template."""

    def __init__(self, tokenizer: Any) -> None:  # of transformers, which is imported late
        self._tokenizer = tokenizer
        self.has_template = bool(tokenizer.chat_template)

    def tokens(self, record: Record) -> list[int]:
        """All of it, as the model would have seen it."""
        if not record.messages:
            return self.encode(record.text, is_chat=False)
        is_answered = record.messages[-1]["role"] == "assistant"
        return self._chat(record.messages, record.tools, is_open=not is_answered)

    def prompt(self, record: Record) -> list[int]:
        """What was asked: all but the last answer, where there is one."""
        if not record.messages:
            return self.encode(record.text[: record.prompt] if record.prompt else record.text, is_chat=False)
        is_answered = record.messages[-1]["role"] == "assistant" and len(record.messages) > 1
        return self._chat(record.messages[:-1] if is_answered else record.messages, record.tools, is_open=True)

    def scored(self, record: Record, ids: Sequence[int]) -> list[list[int]]:
        """Spans of ``ids``, which may be cut short, that are the assistant's text; of plain text all but the first."""
        if not record.messages:
            is_part = 0 < record.prompt < len(record.text)
            start = max(1, _shared(self.prompt(record), ids)) if is_part else 1
            return [[start, len(ids)]] if start < len(ids) else []
        answers = [at for at, each in enumerate(record.messages) if each["role"] == "assistant"]
        if not answers:
            return [[1, len(ids)]] if len(ids) > 1 else []
        spans: list[list[int]] = []
        for at in answers:
            start = _shared(self._chat(record.messages[:at], record.tools, is_open=True), ids) if at else 1
            end = _shared(self._chat(record.messages[: at + 1], record.tools, is_open=False), ids)
            start = max(1, start, spans[-1][1] if spans else 1)
            if start < end:
                spans.append([start, self._end(ids, start, end)])
        return spans

    def ask(self, told: str | Sequence[Message]) -> list[int]:
        """A prompt that waits for its answer; text is a user's message where the model chats."""
        if isinstance(told, str) and not self.has_template:
            return self.encode(told, is_chat=False)
        messages = [{"role": "user", "content": told}] if isinstance(told, str) else told
        return self._chat(messages, (), is_open=True)

    def encode(self, text: str, *, is_chat: bool) -> list[int]:
        """Of text; a rendered chat has its special tokens already."""
        return list(self._tokenizer(text, add_special_tokens=not is_chat, verbose=False)["input_ids"])

    def _end(self, ids: Sequence[int], start: int, end: int) -> int:
        """Behind the token that ends an answer; what templates put between turns is nobody's text."""
        last = self._tokenizer.eos_token_id
        return next((at + 1 for at in range(start, end) if ids[at] == last), end)

    def _chat(self, messages: Sequence[Message], tools: Sequence[Any], *, is_open: bool) -> list[int]:
        if not self.has_template:
            text = "".join(f"{each['role']}: {each['content']}\n" for each in messages)
            return self.encode(text + "assistant:" if is_open else text, is_chat=False)
        try:
            text = self._tokenizer.apply_chat_template(
                list(messages), tools=list(tools) or None, tokenize=False, add_generation_prompt=is_open
            )
        except Exception as exc:
            # Whatever a template raises, or what it makes Python raise for a record that it does not know.
            raise RenderError(f"the chat template refuses it ({type(exc).__name__})") from exc
        return self.encode(text, is_chat=True)


def load(model: str) -> Renderer:
    """The tokenizer of a folder; raises :class:`RefusedError`."""
    from transformers import AutoTokenizer

    try:
        return Renderer(AutoTokenizer.from_pretrained(model))
    except Exception as exc:
        # What the libraries raise for damaged files differs from class to class.
        why = " ".join(str(exc).split())
        raise RefusedError(
            f"{model}: its tokenizer cannot be loaded: {why}; the folder needs its tokenizer files"
        ) from exc


def _shared(some: Sequence[int], all_of_it: Sequence[int]) -> int:
    """Tokens at the start that both have: how far the text of ``some`` goes, where templates render prefixes alike."""
    for at, (one, other) in enumerate(zip(some, all_of_it, strict=False)):
        if one != other:
            return at
    return min(len(some), len(all_of_it))
