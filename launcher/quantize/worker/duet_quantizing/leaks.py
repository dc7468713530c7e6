"""Secrets and personal data in records: counted by kind, never told."""

import re
from collections import Counter
from collections.abc import Iterable

_KINDS = {
    "private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY",
    "AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22})",
    "Hugging Face token": r"\bhf_[A-Za-z0-9]{30}",
    "Slack token": r"\bxox[abeprs]-[A-Za-z0-9-]{10}",
    "Google API key": r"\bAIza[0-9A-Za-z_-]{35}",
    "API key": r"\bsk-[A-Za-z0-9_-]{20}",
    "JSON web token": r"\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,2000}\.",
    "bearer token": r"(?i:\bbearer)\s{1,3}[A-Za-z0-9._~+/-]{20}",
    "password": r"(?i:\b(?:password|passwd|secret|api[_-]?key|access[_-]?token)[\"']?)"
    r"\s{0,3}[:=]\s{0,3}[\"']?[^\s\"'<>{}]{8}",
    "password in a URL": r"://[^/\s:@]{1,100}:[^/\s:@]{3,100}@",
    "e-mail address": r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,5}\.[A-Za-z]{2,}\b",
}
_PATTERNS = {kind: re.compile(pattern) for kind, pattern in _KINDS.items()}
_CARD = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")


def kinds(texts: Iterable[str]) -> dict[str, int]:
    """In how many texts each kind is; of those that are there."""
    found: Counter[str] = Counter()
    for text in texts:
        found.update(kind for kind, pattern in _PATTERNS.items() if pattern.search(text))
        found.update(["payment card"] * any(_is_card(match.group()) for match in _CARD.finditer(text)))
    return {kind: found[kind] for kind in sorted(found)}


def _is_card(digits: str) -> bool:
    """By the sum that every such number has (Luhn); and no row of one digit."""
    numbers = [int(digit) for digit in digits if digit.isdigit()]
    doubled = [sum(divmod(2 * number, 10)) if at % 2 else number for at, number in enumerate(reversed(numbers))]
    return sum(doubled) % 10 == 0 and len(set(numbers)) > 1
