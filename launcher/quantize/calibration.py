"""Decision: are these records good to calibrate with? Bounds with their reasons, and what to tell of the facts."""

from collections.abc import Iterator, Mapping
from typing import Any

from launcher.errors import QuantizeError

LEAST_RECORDS = 64
LEAST_TOKENS = 32_768
USUAL_RECORDS = 512
MOST_RECORDS = 1024
LEAST_HELD_OUT = 32
HELD_OUT = 64
MAX_TOKENS = 2048
"""Of one record; the rest of a longer one is cut."""

TOO_MANY = (
    f"more than {MOST_RECORDS:,} records make calibration longer and not better: the statistics of each layer hardly "
    f"change from {USUAL_RECORDS} on; ask for {LEAST_RECORDS} to {MOST_RECORDS:,}"
)
_WHY_TOKENS = (
    "for each layer GPTQ estimates how its inputs go together, a square table as wide as the layer, and with fewer "
    "tokens than this that table is mostly noise (or cannot be inverted)"
)
_WHY_RECORDS = "fewer do not show what production sends, and the scales of activations come from a few prompts"


def judged(facts: Mapping[str, Any], *, needs_data: bool = True, force: bool = False) -> tuple[str, ...]:
    """What to tell of the records; raises :class:`QuantizeError` when they will not do and none is forced."""
    refused = refusals(facts, needs_data=needs_data)
    if refused and not force:
        raise QuantizeError("\n".join(refused))
    return (*refused, *warnings(facts, needs_data=needs_data))


def refusals(facts: Mapping[str, Any], *, needs_data: bool) -> tuple[str, ...]:
    """Why nothing should be calibrated with these records, each with a fix; ``facts`` are those of step ``prepare``.

    ``needs_data``: whether the scheme is calibrated at all; one that is not needs held-out records only.
    """
    return tuple(_refusals(facts)) if needs_data else ()


def warnings(facts: Mapping[str, Any], *, needs_data: bool) -> tuple[str, ...]:
    """What the user should know of the records, the worst first; each says what to do."""
    return tuple(_warnings(facts, needs_data=needs_data))


def summary(facts: Mapping[str, Any]) -> str:
    """What was taken, in one sentence."""
    lengths = facts["lengths"]
    return (
        f"{facts['used']:,} records with {facts['tokens']:,} tokens to calibrate with, {facts['held_out']:,} held out "
        f"for the gate, of {facts['read']:,} read; half of them have at most {lengths['p50']:,} tokens, 99 % at most "
        f"{lengths['p99']:,}"
    )


def _refusals(facts: Mapping[str, Any]) -> Iterator[str]:
    if facts["used"] < LEAST_RECORDS:
        yield (
            f"calibration: {facts['used']} records are left of {facts['read']} read, at least {LEAST_RECORDS} are "
            f"needed: {_WHY_RECORDS}; collect more ({USUAL_RECORDS} are usual), or --force"
        )
    if facts["tokens"] < LEAST_TOKENS:
        yield (
            f"calibration: {facts['tokens']:,} tokens, at least {LEAST_TOKENS:,} are needed: {_WHY_TOKENS}; give more "
            f"or longer records, or --force"
        )


def _warnings(facts: Mapping[str, Any], *, needs_data: bool) -> Iterator[str]:
    used, chosen = facts["used"], facts["used"] + facts["held_out"]
    if facts["secrets"]:
        kinds = ", ".join(f"{kind} in {count}" for kind, count in facts["secrets"].items())
        yield (
            f"Secrets or personal data in the records ({kinds}): the work folder has their tokens; the checkpoint and "
            f"its report have none of the text. Remove them, or protect the work folder and delete it afterwards."
        )
    if facts["held_out"] < LEAST_HELD_OUT:
        yield (
            f"Only {facts['held_out']} records are held out for the gate, with fewer than {LEAST_HELD_OUT} it "
            f"concludes nothing: give more records."
        )
    if needs_data and LEAST_RECORDS <= used < USUAL_RECORDS:
        yield f"{used} records are few, {USUAL_RECORDS} are usual: another draw may give another result."
    if facts["unreadable"]:
        first = facts["faults"][0]
        yield (
            f"{facts['unreadable']} of {facts['read']} lines cannot be read, the first is line {first['line']}: "
            f"{first['why']}."
        )
    if facts["duplicates"]:
        yield f"{facts['duplicates']:,} of {facts['read']:,} records repeat another word for word: each counts once."
    if facts["near_duplicates"] * 20 >= chosen:
        yield (
            f"{facts['near_duplicates']} records are nearly the same as another: the set is less varied than its size "
            f"says. {facts['like_held_out']} of them resembled held-out records and were left out."
        )
    if facts["refused_by_template"]:
        yield (
            f"{facts['refused_by_template']} records were left out: the model's chat template refuses them (roles that "
            f"it does not know, or that do not take turns)."
        )
    if not facts["chat_template"]:
        yield (
            "The model has no chat template: messages were written as plain text. If clients use /v1/chat/completions "
            "with a template of their own, put it into the model's folder first."
        )
    if facts["plain"]:
        yield (
            f"{facts['plain']} records are plain text although the model chats: give messages, unless clients use "
            f"/v1/completions."
        )
    if facts["unanswered"]:
        yield (
            f"{facts['unanswered']} of the held-out records have no answer of the assistant: there the gate compares "
            f"all tokens, those of the prompt too. Records with answers judge better."
        )
    if facts["truncated"] * 20 >= chosen:
        yield (
            f"{facts['truncated']} of {chosen} records were longer than the {facts['max_tokens']:,} tokens that are "
            f"taken of one: what comes later in such prompts was not seen."
        )
    if facts.get("task_items_too_long"):
        yield (
            f"{facts['task_items_too_long']} items of the task are longer than {facts['max_tokens']:,} tokens and were "
            f"left out."
        )
