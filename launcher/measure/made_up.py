"""Decision: a workload's parts -> requests, as many as are wanted, the same for the same seed."""

from collections.abc import Sequence
from random import Random
from typing import overload

from pydantic import JsonValue

from launcher.measure.lengths import drawn, temperature
from launcher.measure.request import Request
from launcher.measure.texts import prose, text
from launcher.measure.workload import Part

MANY = 1_000_000
"""Different requests of one seed; each is made when it is sent."""


class MadeUp(Sequence[Request]):
    """The so-many-th request depends on the seed and on its number alone."""

    def __init__(self, parts: Sequence[Part], seed: int, count: int = MANY) -> None:
        self._parts, self._seed, self._count = parts, seed, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Request: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Request]: ...
    def __getitem__(self, at: int | slice) -> Request | Sequence[Request]:
        if isinstance(at, slice):
            return [self._made(number) for number in range(*at.indices(self._count))]
        if not -self._count <= at < self._count:
            raise IndexError(at)
        return self._made(at % self._count)

    def _made(self, number: int) -> Request:
        random = Random(f"{self._seed}/{number}")
        (which,) = random.choices(range(len(self._parts)), [each.weight for each in self._parts])
        part = self._parts[which]
        asked = text(part.ask, drawn(part.prompt_words, random), random, chat=part.chat)
        prefix = self._prefix(which, random)
        body: dict[str, JsonValue] = {
            **_prompt(asked.prompt, prefix, chat=part.chat),
            "max_tokens": drawn(part.output_tokens, random),
            "temperature": temperature(part.temperatures, random),
            **({"ignore_eos": True} if part.ignore_eos else {}),
            **part.parameters,
        }
        return Request("chat/completions" if part.chat else "completions", body, answer=asked.answer)

    def _prefix(self, which: int, random: Random) -> str | None:
        shared = self._parts[which].shared_prefix
        if shared is None or random.random() >= shared.share:
            return None
        return prose(shared.words, Random(f"{self._seed}/prefix/{which}/{random.randrange(shared.number)}"))


def _prompt(asked: str, prefix: str | None, *, chat: bool) -> dict[str, JsonValue]:
    if not chat:
        return {"prompt": asked if prefix is None else f"{prefix}\n\n{asked}"}
    system: list[JsonValue] = [] if prefix is None else [{"role": "system", "content": prefix}]
    return {"messages": [*system, {"role": "user", "content": asked}]}
