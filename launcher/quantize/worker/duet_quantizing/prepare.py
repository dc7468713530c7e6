"""Step ``prepare``: from the user's records to token ids, and what is to be known of them."""

from typing import Any

from .chosen import Chosen, choose, needed
from .distribution import distribution, lengths
from .drawing import Drawn, draw
from .leaks import kinds
from .rendering import Renderer, load
from .task import read_task
from .telling import RefusedError, Tell


def prepare(job: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Records to calibrate with, records held out, the task, facts, and the distribution of prompts.

    Raises :class:`RefusedError` for files that cannot be used.
    """
    renderer = load(job["model"])
    task, too_long = read_task(job["task"], renderer, job["max_tokens"]) if job.get("task") else (None, 0)
    drawn, chosen = take(job, job["calibration"], renderer, tell)
    return {
        "calibration": chosen.calibration,
        "held_out": chosen.held_out,
        "task": task,
        "facts": facts(drawn, chosen, renderer, job) | {"task_items_too_long": too_long},
        "distribution": distribution(chosen.prompts, job["max_tokens"], job["seed"]),
    }


def take(job: dict[str, Any], path: str, renderer: Renderer, tell: Tell) -> tuple[Drawn, Chosen]:
    """Draw and choose from a file."""
    records, held_out = job["records"], job.get("held_out", 64)
    drawn = draw(path, needed(records, held_out), job["seed"], tell)
    tell.progress("Choose records", 0, len(drawn.records))
    chosen = choose(drawn.records, renderer, records=records, held_out=held_out, max_tokens=job["max_tokens"])
    tell.progress("Choose records", len(drawn.records), len(drawn.records))
    if not chosen.calibration:
        raise RefusedError(
            f"{path}: none of its {len(drawn.records)} records can be calibrated with ({chosen.refused} refused by the "
            f"chat template); give records like those that the model is served"
        )
    return drawn, chosen


def facts(drawn: Drawn, chosen: Chosen, renderer: Renderer, job: dict[str, Any]) -> dict[str, Any]:
    """Numbers of the file and of the records that were chosen; no text of them."""
    return drawn.facts | {
        "near_duplicates": chosen.near_duplicates,
        "like_held_out": chosen.like_held_out,
        "refused_by_template": chosen.refused,
        "secrets": kinds(record.everything for record in chosen.used),
        "used": len(chosen.calibration),
        "held_out": len(chosen.held_out),
        "unanswered": chosen.unanswered,
        "plain": chosen.plain,
        "tokens": sum(map(len, chosen.calibration)),
        "lengths": lengths(chosen.calibration),
        "max_tokens": job["max_tokens"],
        "truncated": chosen.truncated,
        "chat_template": renderer.has_template,
    }
