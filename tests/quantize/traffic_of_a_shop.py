"""Made-up conversations with a small vocabulary, the same for the same seed: a tiny model can learn them."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

_PEOPLE = ("Anna", "Boris", "Clara", "David", "Elena", "Felix", "Greta", "Henry")
_THINGS = ("lamp", "chair", "table", "clock", "mirror", "carpet", "kettle", "basket")
_COLOURS = ("red", "green", "blue", "white", "black", "yellow")
_PLACES = ("kitchen", "garden", "office", "hall", "cellar", "attic")
_PRICES = {thing: 10 * (number + 1) for number, thing in enumerate(_THINGS)}


def conversations(number: int, seed: int) -> Iterator[list[dict[str, str]]]:
    """Questions and answers of a shop; what something costs depends on the thing alone."""
    random = Random(seed)
    for _ in range(number):
        messages = []
        for _ in range(random.randint(3, 5)):
            who, thing, colour, place = map(random.choice, (_PEOPLE, _THINGS, _COLOURS, _PLACES))
            asked = f"{who} wants a {colour} {thing} for the {place}. What does it cost?"
            told = f"The {colour} {thing} for the {place} costs {_PRICES[thing]} euros, and {who} can take it today."
            messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": told}]
        yield messages


def questions(number: int, seed: int) -> Iterator[dict[str, object]]:
    """A labelled task: which price is right?"""
    random = Random(seed)
    for _ in range(number):
        who, thing, colour, place = map(random.choice, (_PEOPLE, _THINGS, _COLOURS, _PLACES))
        wrong = random.choice([price for price in _PRICES.values() if price != _PRICES[thing]])
        answer = random.randrange(2)
        told = [f"The {colour} {thing} for the {place} costs {price} euros" for price in (_PRICES[thing], wrong)]
        yield {
            "messages": [
                {"role": "user", "content": f"{who} wants a {colour} {thing} for the {place}. What does it cost?"}
            ],
            "choices": told if answer == 0 else told[::-1],
            "answer": answer,
        }


def write_jsonl(lines: Iterator[object], file: Path) -> None:
    """One JSON document a line."""
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
