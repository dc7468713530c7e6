"""Of the records drawn: those that are calibrated with, and those held out for the gate."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .near import is_near, signatures
from .record import Record
from .rendering import Renderer, RenderError

_SURPLUS = 64
"""Records drawn beyond what is needed, and half of that again: some turn out to be near-duplicates."""
_LEAST_HELD_OUT = 32
"""As few as something can be concluded from; of a file with too few a fifth, but no fewer than these, is held out."""


@dataclass(slots=True)
class Chosen:
    """Records as token ids, cut at the most tokens a record may have; no one is like one that is held out."""

    calibration: list[list[int]] = field(default_factory=list)
    held_out: list[dict[str, Any]] = field(default_factory=list)
    """``ids``, and the spans in them that are ``scored``."""
    prompts: list[list[int]] = field(default_factory=list)
    """Of all of these, whole."""
    used: list[Record] = field(default_factory=list)
    """All of these."""
    near_duplicates: int = 0
    like_held_out: int = 0
    """Of these: left out, as they are near-duplicates of what is held out."""
    refused: int = 0
    """By the chat template."""
    truncated: int = 0
    unanswered: int = 0
    """Held out, without any text of the assistant."""
    plain: int = 0
    """Plain text, of a model that chats."""


def needed(records: int, held_out: int) -> int:
    """How many to draw."""
    return (records + held_out) * 3 // 2 + _SURPLUS


def choose(drawn: Sequence[Record], renderer: Renderer, *, records: int, held_out: int, max_tokens: int) -> Chosen:
    """Hold out first, then take ``records`` for calibration; fewer of both where there are fewer."""
    chosen = Chosen()
    rows = signatures([record.words for record in drawn])
    kept: list[int] = []
    held: list[int] = []
    few = min(held_out, max(_LEAST_HELD_OUT, len(drawn) // 5), len(drawn) // 2)
    quota = held_out if len(drawn) >= records + held_out else few
    for at, record in enumerate(drawn):
        if len(chosen.calibration) == records and len(held) == quota:
            break
        if is_near(rows[at], rows[held]):
            chosen.near_duplicates += 1
            chosen.like_held_out += 1
            continue
        try:
            ids, prompt = renderer.tokens(record), renderer.prompt(record)
            spans = renderer.scored(record, ids[:max_tokens]) if len(held) < quota else []
        except RenderError:
            chosen.refused += 1
            continue
        if spans and not is_near(rows[at], rows[kept]):
            held.append(at)
            chosen.held_out.append({"ids": ids[:max_tokens], "scored": spans})
            chosen.unanswered += not any(each["role"] == "assistant" for each in record.messages) and not record.text
        elif len(chosen.calibration) < records:
            chosen.near_duplicates += is_near(rows[at], rows[kept])
            kept.append(at)
            chosen.calibration.append(ids[:max_tokens])
        else:
            continue
        chosen.used.append(record)
        chosen.prompts.append(prompt)
        chosen.truncated += len(ids) > max_tokens
        chosen.plain += renderer.has_template and not record.messages
    return chosen
