"""Step ``count``: what recent requests look like, to compare them with the calibration."""

from typing import Any

from .distribution import distribution
from .prepare import facts, take
from .rendering import load
from .telling import Tell


def count(job: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """The distribution of live prompts, records to ask both models, and facts; as ``prepare`` makes them."""
    renderer = load(job["model"])
    drawn, chosen = take(job, job["live"], renderer, tell)
    return {
        "distribution": distribution(chosen.prompts, job["max_tokens"], job["seed"]),
        "held_out": chosen.held_out,
        "facts": facts(drawn, chosen, renderer, job),
    }
