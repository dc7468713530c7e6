"""Stands in for a model's tokenizer: words and marks are tokens, and a chat template as many have it."""

import re
from collections.abc import Sequence
from typing import Any

_ENDS = "<end>"


class Words:
    """The part of a transformers tokenizer that records are rendered with."""

    eos_token_id = 1

    def __init__(self, chat_template: str | None = "there is one") -> None:
        self.chat_template = chat_template
        self.known = {"<bos>": 0, _ENDS: self.eos_token_id}

    def __call__(self, text: str, *, add_special_tokens: bool, verbose: bool) -> dict[str, list[int]]:
        pieces = re.findall(r"<\w+>|\s?\w+|\s|.", text)
        return {
            "input_ids": [
                self.known.setdefault(each, len(self.known)) for each in ["<bos>"] * add_special_tokens + pieces
            ]
        }

    def apply_chat_template(
        self, messages: Sequence[dict[str, Any]], *, tools: object, tokenize: bool, add_generation_prompt: bool
    ) -> str:
        if any(each["role"] == "critic" for each in messages):
            raise ValueError("Conversation roles must alternate")
        text = "".join(f"<{each['role']}>{each['content']}{_ENDS}\n" for each in messages)
        return text + "<assistant>" * add_generation_prompt

    def text(self, ids: Sequence[int]) -> str:
        """Of tokens."""
        names = {number: piece for piece, number in self.known.items()}
        return "".join(names[each] for each in ids)
