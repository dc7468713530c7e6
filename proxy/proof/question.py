"""Decision: what a canary asks.

Random tokens, repeated: nobody has them cached, and any language model continues a repetition with near certainty, from
what lies far back in its KV cache. So the answer depends on the KV, and is no toss-up between two tokens.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from proxy.completion import Completion, JsonObject
from proxy.endpoint import Endpoint

_PERIOD = 48
"""Tokens until the repetition."""
ANSWER_TOKENS = 8
_VARIETY = 16
"""Different tokens that are needed at least to make something fresh of them."""
VOCABULARY_TEXT = (
    "river stone lamp seven orange window paper green table quiet north engine bottle silver garden morning bridge "
    "yellow market winter circle number forest doctor music island pencil summer castle button letter candle "
    "0 1 2 3 4 5 6 7 8 9 A B C D E F G H I J K L M N O P Q R S T U V W X Y Z a b c d e f g h i j k l m n o p q r s t"
)
"""What an engine is asked to tokenize, to know tokens that its model has."""


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt that has never been asked before."""

    model: str
    prompt: tuple[int, ...]
    salt: str
    """Keeps the prefix caches of two askings apart."""

    def completion(self, salt: str, extra: JsonObject | None = None) -> Completion:
        """The request; with another ``salt`` nothing of it is cached."""
        document: JsonObject = {
            "model": self.model,
            "prompt": list(self.prompt),
            "max_tokens": ANSWER_TOKENS,
            "temperature": 0,
            "logprobs": 5,
            "return_tokens_as_token_ids": True,
            "ignore_eos": True,
            "cache_salt": f"{self.salt}-{salt}",
            **(extra or {}),
        }
        return Completion(document, json.dumps(document).encode(), Endpoint.COMPLETIONS)


def length(block_size: int, max_model_len: int | None) -> int:
    """Tokens of the prompt: over two blocks, if the model takes so many; some connectors move whole blocks only."""
    wanted = max(2 * block_size, 2 * _PERIOD) + _PERIOD
    return wanted if max_model_len is None else max(min(wanted, max_model_len - ANSWER_TOKENS), 1)


def ask(model: str, vocabulary: Sequence[object], tokens: int, random: Random) -> Question:
    """A fresh question of so many tokens; raises :class:`ValueError` when there are too few different ones."""
    known = sorted({token for token in vocabulary if type(token) is int and token >= 0})
    if len(known) < _VARIETY:
        raise ValueError(
            f"the tokenizer makes only {len(known)} different tokens of the text that canaries are made of"
        )
    period = [random.choice(known) for _ in range(_PERIOD)]
    prompt = tuple(period[place % _PERIOD] for place in range(tokens))
    return Question(model, prompt, f"duet-canary-{random.getrandbits(64):016x}")
