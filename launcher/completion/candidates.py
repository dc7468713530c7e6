"""Decision: what may stand at the place of a word that is being typed."""

from collections.abc import Callable, Iterable, Sequence

from launcher.completion.vocabulary import Kind, Verb, Vocabulary, Word

Names = Callable[[Kind, str, Sequence[str]], Iterable[str]]
"""Profiles or instances that begin so; the words before tell which deployment."""


def candidates(vocabulary: Vocabulary, before: Sequence[str], typed: str, names: Names) -> list[str]:
    """What ``typed``, after the words ``before``, may become; in the order in which it is shown."""
    position = next((index for index, each in enumerate(before) if not each.startswith("-")), None)
    if position is None:
        return _beginning(typed, vocabulary.verbs)
    verb = vocabulary.verbs.get(before[position])
    if verb is None:
        return []
    option, equals, part = typed.partition("=")
    if typed.startswith("-") and equals:
        word = verb.options.get(option)
        return [] if word is None else [f"{option}={each}" for each in _of(word, part, vocabulary, before, names)]
    place = _place(verb, before[position + 1 :])
    if typed.startswith("-") and place is verb.argument:
        return _beginning(typed, verb.options)
    return [] if place is None else _of(place, typed, vocabulary, before, names)


def _place(verb: Verb, before: Sequence[str]) -> Word | None:
    """What is expected after these words of a verb."""
    return (verb.options.get(before[-1]) if before else None) or verb.argument


def _of(word: Word, typed: str, vocabulary: Vocabulary, before: Sequence[str], names: Names) -> list[str]:
    if word.choices:
        return _beginning(typed, word.choices)
    match word.kind:
        case Kind.SETTING:
            path, equals, _ = typed.partition("=")
            values = [f"{path}={value}" for value in vocabulary.settings.get(path, ())]
            return _beginning(typed, values if equals else [f"{each}=" for each in vocabulary.settings])
        case Kind.OTHER:
            return []
        case _:
            return sorted(names(word.kind, typed, before))


def _beginning(typed: str, words: Iterable[str]) -> list[str]:
    return [each for each in words if each.startswith(typed)]
