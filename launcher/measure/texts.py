"""Decision: made-up texts of real words, by a seeded random generator."""

from random import Random
from typing import NamedTuple

from launcher.measure.vocabulary import ADJECTIVES, NOUNS, PLACES, TIMES, VERBS
from launcher.measure.workload import Ask


class Text(NamedTuple):
    """What is asked, and what a right answer has in it, where that is known."""

    prompt: str
    answer: str | None = None


def text(ask: Ask, words: int, random: Random, *, chat: bool) -> Text:
    """Of about so many words, at least as many as its request itself needs."""
    match ask:
        case Ask.WRITE:
            return Text(_free(words, random, chat=chat))
        case Ask.REPEAT:
            return _repeat(words, random, chat=chat)
        case Ask.EDIT:
            return _edit(words, random, chat=chat)
        case Ask.ANSWER:
            return _answer(words, random, chat=chat)


def prose(words: int, random: Random) -> str:
    """Sentences of at least so many words."""
    sentences: list[str] = []
    count = 0
    while count < words:
        sentences.append(_sentence(random))
        count += len(sentences[-1].split())
    return " ".join(sentences)


def _sentence(random: Random) -> str:
    one, other, third = random.sample(NOUNS, 3)
    first, second = random.sample(ADJECTIVES, 2)
    begin = f"{random.choice(TIMES)}, the" if random.random() < 0.4 else "The"
    return f"{begin} {first} {one} {random.choice(VERBS)} the {second} {other} {random.choice(PLACES)} the {third}."


def _free(words: int, random: Random, *, chat: bool) -> str:
    one, other, third = random.sample(NOUNS, 3)
    told = f"Write a long and detailed story about a {random.choice(ADJECTIVES)} {one}, a {other} and a {third}."
    notes = prose(words - len(told.split()) - 8, random)
    if not chat:
        return f"{notes} It began with a {random.choice(ADJECTIVES)} {one} and a {other}."
    return f"{told} Do not use any of these sentences: {notes}" if notes else told


def _repeat(words: int, random: Random, *, chat: bool) -> Text:
    passage = prose(max(8, words - 12), random)
    answer = passage.partition(".")[0]
    if chat:
        return Text(f"Repeat the following text word by word, and say nothing else:\n\n{passage}", answer)
    # A text that has begun a third time goes on as it did before, whichever the model.
    passage = prose(max(8, words // 2), random)
    return Text(f"{passage}\n\n{passage}\n\n", passage.partition(".")[0])


def _edit(words: int, random: Random, *, chat: bool) -> Text:
    old, new = random.sample(NOUNS, 2)
    lines = [f"def {old}_total(items):", "    total = 0"]
    while len(" ".join(lines).split()) < words - 20:
        name, field = random.sample(NOUNS, 2)
        lines += [f"    {name} = items.get('{field}', 0)", f"    if {name} > {random.randint(2, 99)}:"]
        lines += [f"        total += {name} * {random.randint(2, 9)}"]
    lines.append("    return total")
    code = "\n".join(lines)
    changed = code.replace(f"{old}_total", f"{new}_total", 1)
    if chat:
        ask = f"Rename the function {old}_total to {new}_total and give back all of its code unchanged otherwise."
        return Text(f"{ask}\n\n```python\n{code}\n```", f"{new}_total")
    return Text(
        f"# Before\n{code}\n\n# The same, with {old}_total renamed to {new}_total\n", changed.partition("\n")[0]
    )


def _answer(words: int, random: Random, *, chat: bool) -> Text:
    keeper, thing = random.sample(NOUNS, 2)
    number = random.randint(100, 999)
    before = prose((words - 30) // 2, random)
    after = prose((words - 30) // 2, random)
    fact = f"The {keeper} has exactly {number} pieces of {thing}."
    question = f"How many pieces of {thing} does the {keeper} have?"
    told = f"{before} {fact} {after}".strip()
    return Text(f"{told}\n\n{question}" if chat else f"{told}\n\nQuestion: {question}\nAnswer:", str(number))
