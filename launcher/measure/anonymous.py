"""Decision: records of real requests without their words, that load a server as the originals did.

Each word becomes a made-up one of the same length, equal words equal ones, so that prefixes are shared and texts repeat
themselves as before. Which became which is known while it is at work only.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

from pydantic import JsonValue

from launcher.errors import MeasureError
from launcher.measure.request import Request

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\d|[^\W\d]+")
"""A word; a digit; one character of a script that writes words without blanks between them."""
_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnprstvwz"
_IDEOGRAPHS = range(0x4E00, 0x9FA5)
_NUMBERS = frozenset(
    """
    max_tokens max_completion_tokens min_tokens temperature top_p top_k min_p seed ignore_eos presence_penalty
    frequency_penalty repetition_penalty length_penalty n logprobs top_logprobs echo skip_special_tokens
    add_generation_prompt parallel_tool_calls
    """.split()  # noqa: SIM905  # a list of twenty quoted words is no better to read
)
"""Parameters that have no words."""
_TEXTS = ("messages", "prompt", "tools", "tool_choice", "response_format", "stop")
"""Those that have; all others are left out."""
_GRAMMAR = frozenset({"role", "type", "format", "tool_choice"})
"""Keys whose words are the API's own."""
_API = frozenset(
    """
    role content type text tool_calls tool_call_id id function name arguments description parameters properties required
    items enum anyOf allOf oneOf additionalProperties strict default format minimum maximum minItems maxItems refusal
    reasoning reasoning_content
    """.split()  # noqa: SIM905
)
"""Keys that are the API's own; any other is somebody's word."""
_TRIES = 200


class Anonymiser:
    """One for all records that are to repeat each other as before."""

    def __init__(self, random: Random, originals: Iterable[str] = ()) -> None:
        """``originals``: words that no made-up one may be."""
        self._random = random
        self._known: dict[str, str] = {}
        self._taken = {each.lower() for each in originals}

    def text(self, text: str) -> str:
        """With the same blanks and punctuation."""
        return _WORD.sub(lambda found: self._word(found.group()), text)

    def _word(self, word: str) -> str:
        if word not in self._known:
            small = word.lower()
            if small != word and len(small) == len(word):
                self._known[word] = _cased(self._word(small), word)
            else:
                self._known[word] = self._made_up(word)
        return self._known[word]

    def _made_up(self, word: str) -> str:
        """Another one; short ones may be used up, and then are some that others are, too."""
        make = self._maker(word)
        made = make()
        for _ in range(_TRIES):
            if made not in self._taken:
                break
            made = make()
        while made == word:
            made = make()
        self._taken.add(made)
        return made

    def _maker(self, word: str) -> Callable[[], str]:
        if word.isdigit():
            return lambda: str(self._random.randrange(10))
        if len(word) == 1 and not word.isascii():
            return lambda: chr(self._random.choice(_IDEOGRAPHS))
        first = self._random.randrange(2)
        return lambda: "".join(
            self._random.choice(_VOWELS if (at + first) % 2 else _CONSONANTS) for at in range(len(word))
        )


def _cased(made: str, like: str) -> str:
    return "".join(one.upper() if other.isupper() else one for one, other in zip(made, like, strict=True))


def anonymous(requests: Sequence[Request], random: Random) -> Iterator[dict[str, JsonValue]]:
    """The same requests in other words, as records; ``requests``: all of them, as they share words.

    Raises :class:`MeasureError` for token ids and images, which have no words to replace.
    """
    words = {word for each in requests for text in _texts([dict(each.body), each.answer]) for word in _words(text)}
    anonymiser = Anonymiser(random, words)
    for number, request in enumerate(requests, 1):
        made: dict[str, JsonValue] = {} if request.at is None else {"at": request.at}
        for key, value in request.body.items():
            if key in _NUMBERS and isinstance(value, int | float):
                made[key] = value
            elif key in _TEXTS:
                made[key] = _replaced(value, key, anonymiser, number)
        yield made if request.answer is None else {**made, "answer": anonymiser.text(request.answer)}


def _words(text: str) -> list[str]:
    return [each.lower() for each in _WORD.findall(text)]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _replaced(value: JsonValue, key: str, anonymiser: Anonymiser, number: int) -> JsonValue:
    if isinstance(value, str):
        return value if key in _GRAMMAR else anonymiser.text(value)
    if isinstance(value, list):
        if key == "prompt" and any(isinstance(each, int | list) for each in value):
            raise MeasureError(f"request {number} has token ids, which cannot be made anonymous: give its text")
        return [_replaced(each, key, anonymiser, number) for each in value]
    if isinstance(value, dict):
        if value.get("type") in {"image_url", "input_audio", "video_url", "file"}:
            raise MeasureError(f"request {number} has {value['type']}, which cannot be made anonymous: leave it out")
        return {
            name if name in _API else anonymiser.text(name): _replaced(each, name, anonymiser, number)
            for name, each in value.items()
        }
    return value
