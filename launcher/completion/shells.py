"""Decision: how shells ask, and how they take the answer; by the scripts that typer installs."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A command line that is being typed."""

    before: list[str]
    """The words after the program, up to that at the cursor."""
    typed: str
    """Of the word at the cursor."""
    kept: str = ""
    """How much of that the shell leaves as it is: an answer replaces only the rest."""


def line(shell: str, environ: Mapping[str, str]) -> Line:
    """What a shell asks about."""
    if shell == "bash":
        found, number = _split(environ["COMP_WORDS"]), int(environ["COMP_CWORD"])
        typed = found[number] if number < len(found) else ""
        *before, whole = _joined([*found[1:number], typed])
        return Line(before, whole, whole if typed == "=" else whole.removesuffix(typed))
    text = environ["_TYPER_COMPLETE_ARGS"]
    words = _split(text)[1:]
    return Line(words, "") if text.endswith(" ") or not words else Line(words[:-1], words[-1])


def answer(shell: str, environ: Mapping[str, str], candidates: Sequence[str]) -> tuple[str, int]:
    """What is printed, and the exit code."""
    if shell == "zsh":
        quoted = "\n".join(f'"{_for_zsh(each)}"' for each in candidates)
        return (f"_arguments '*: :(({quoted}))'" if candidates else "_files"), 0
    if shell == "fish" and environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return "", 0 if candidates else 1  # without any, fish offers files
    return "\n".join(candidates), 0


def _joined(words: Sequence[str]) -> list[str]:
    """Bash makes `--set a=b` four words."""
    found: list[str] = []
    for word in words:
        if found and (word == "=" or found[-1].endswith("=")):
            found[-1] += word
        else:
            found.append(word)
    return found


def _for_zsh(text: str) -> str:
    for each, written in (('"', '""'), ("'", "''"), ("$", "\\$"), ("`", "\\`"), (":", "\\\\:")):
        text = text.replace(each, written)
    return text


def _split(line: str) -> list[str]:
    """As a shell would; a quote that is still open ends at the end."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    found: list[str] = []
    try:
        found.extend(lexer)
    except ValueError:
        found.append(lexer.token)
    return found
