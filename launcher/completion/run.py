"""Answers a shell, from a file in the cache that holds the vocabulary of exactly this code."""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import platformdirs

from launcher.completion.candidates import candidates
from launcher.completion.names import Existing
from launcher.completion.shells import answer, line
from launcher.completion.vocabulary import Vocabulary

VARIABLE = "_LAUNCHER_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_OURS = Path(__file__).parents[2]
_SOURCES = ("launcher/**/*.py", "proxy/*.py", "profiles/*.yaml", "launcher/shipped_profiles/*.yaml")


def asked(environ: Mapping[str, str]) -> str | None:
    """The shell that asks, if one does that is answered here."""
    instruction, _, shell = environ.get(VARIABLE, "").partition("_")
    return shell if instruction == "complete" and shell in SHELLS else None


def run(shell: str, environ: Mapping[str, str]) -> int:
    """Print the answer; the exit code. Whatever is wrong, a prompt is no place to tell it."""
    found: list[str] = []
    with suppress(Exception):
        asked_about = line(shell, environ)
        vocabulary, shipped = _vocabulary(environ)
        whole = candidates(vocabulary, asked_about.before, asked_about.typed, Existing(shipped, environ))
        found = [each.removeprefix(asked_about.kept) for each in whole]
    text, code = answer(shell, environ, found)
    sys.stdout.write(f"{text}\n" if text else "")
    return code


def _vocabulary(environ: Mapping[str, str]) -> tuple[Vocabulary, list[str]]:
    """That of this code, and the names of the shipped profiles."""
    sources = sorted(path for pattern in _SOURCES for path in _OURS.glob(pattern))
    stamp = hashlib.sha256(repr([(str(each), each.stat().st_mtime_ns) for each in sources]).encode()).hexdigest()
    shipped = [each.stem for each in sources if each.suffix == ".yaml"]
    file = Path(environ.get("DUET_CACHE") or platformdirs.user_cache_dir("duet")) / "completion.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(file.read_bytes())
        if kept["stamp"] == stamp:
            return Vocabulary.of(kept["vocabulary"]), shipped
    from launcher.completion.reading import read  # it imports everything: only once for each version

    vocabulary = read()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}.new")
        new.write_text(json.dumps({"stamp": stamp, "vocabulary": asdict(vocabulary)}))
        new.replace(file)
    return vocabulary, shipped
