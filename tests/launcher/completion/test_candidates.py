"""What completes a command line."""

import pytest

from launcher.completion.candidates import candidates
from launcher.completion.vocabulary import Kind, Verb, Vocabulary, Word

VOCABULARY = Vocabulary(
    {
        "up": Verb(
            {"--help": None, "--detach": None, "--set": Word(Kind.SETTING), "--model": Word()}, Word(Kind.PROFILE)
        ),
        "drain": Verb({"--help": None, "--within": Word()}, Word(Kind.INSTANCE)),
        "down": Verb({"--help": None, "--output": Word(choices=("text", "json"))}, None),
    },
    {"proxy.port": (), "proxy.failure_policy": ("fail", "retry"), "model.id": ()},
)
EXISTING = {Kind.PROFILE: ("demo", "mine.yaml"), Kind.INSTANCE: ("decode-0", "decode-1")}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "up drain down"),
        ("d", "drain down"),
        ("nonsense x", ""),
        ("up ", "demo mine.yaml"),
        ("up d", "demo"),
        ("up demo --d", "--detach"),
        ("up --detach d", "demo"),
        ("up demo --set proxy.", "proxy.port= proxy.failure_policy="),
        ("up demo --set proxy.failure_policy=", "proxy.failure_policy=fail proxy.failure_policy=retry"),
        ("up demo --set proxy.port=", ""),
        ("up demo --set=mod", "--set=model.id="),
        ("up demo --model x", ""),
        ("up demo --nonsense=x", ""),
        ("drain ", "decode-0 decode-1"),
        ("drain decode-0 --", "--help --within"),
        ("down ", ""),
        ("down --output ", "text json"),
        ("down --output=j", "--output=json"),
    ],
)
def test_a_word_may_become_what_its_place_allows(line: str, expected: str):
    *before, typed = line.split(" ")
    found = candidates(
        VOCABULARY, before, typed, lambda kind, typed, _: [each for each in EXISTING[kind] if each.startswith(typed)]
    )
    assert " ".join(found) == expected
