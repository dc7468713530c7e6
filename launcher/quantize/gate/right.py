"""Decision: whether a generated text is the answer that was expected."""

import string
import unicodedata

_MARGIN = 8
"""Tokens beyond the answer's own, so that a longer text is seen to be another."""
_EDGES = string.punctuation + string.whitespace + "“”‘’«»…、。"


def is_right(generated: str, expected: str) -> bool:
    """Whether they are the same, once normalised.

    Of the generated text as many lines count as the expected one has, leading empty ones left out. Both: Unicode NFKC,
    case folded, each run of white space one blank, no punctuation at the edges.
    """
    lines = expected.strip().count("\n") + 1
    return _normalised("\n".join(generated.strip().split("\n")[:lines])) == _normalised(expected)


def room_for(expected: str) -> int:
    """The most tokens to generate: no token is shorter than a byte."""
    return len(expected.encode()) + _MARGIN


def _normalised(text: str) -> str:
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return folded.strip(_EDGES) or folded
