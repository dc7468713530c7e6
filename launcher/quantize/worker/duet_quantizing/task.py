"""A labelled task: questions whose right answers are known."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .record import conversation, parsed
from .rendering import Renderer, RenderError
from .telling import RefusedError

_FORM = '{"messages" or "prompt", "choices": [...], "answer": index} or {"messages" or "prompt", "answer": "text"}'


def read_task(path: str, renderer: Renderer, max_tokens: int) -> tuple[dict[str, Any], int]:
    """The task in tokens, and how many items were left out since they are longer than ``max_tokens``.

    Every line counts, so one that cannot be read is refused: :class:`RefusedError` with its number and what is wrong.
    """
    items: list[dict[str, Any]] = []
    kinds: set[str] = set()
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            item = _item(parsed(line.encode()), renderer)
        except (ValueError, RenderError) as exc:
            raise RefusedError(f"{path}: line {number}: {exc}; each line must be {_FORM}") from exc
        kinds.add("choice" if "choices" in item else "exact")
        if len(kinds) > 1:
            raise RefusedError(
                f"{path}: line {number}: some items have choices and some have not; give one kind a file"
            )
        items.append(item)
    if not items:
        raise RefusedError(f"{path}: has no items; each line must be {_FORM}")
    fitting = [item for item in items if len(item["ids"]) + _longest(item) <= max_tokens]
    if not fitting:
        raise RefusedError(f"{path}: every item is longer than {max_tokens} tokens; give shorter ones")
    return {"kind": kinds.pop(), "items": fitting}, len(items) - len(fitting)


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8-sig")
    except OSError as exc:
        raise RefusedError(f"{path}: cannot be read ({exc.strerror}); give a file of JSON lines") from exc
    except UnicodeDecodeError as exc:
        raise RefusedError(f"{path}: is not UTF-8 text; give a file of JSON lines") from exc


def _longest(item: Mapping[str, Any]) -> int:
    return max((len(choice) for choice in item.get("choices", ())), default=0)


def _item(told: object, renderer: Renderer) -> dict[str, Any]:
    if not isinstance(told, Mapping):
        raise ValueError("not a JSON object")
    asked = told.get("prompt")
    if "messages" in told:
        asked = conversation(told["messages"])
    elif not isinstance(asked, str) or not asked:
        raise ValueError("has neither messages nor a prompt")
    ids = renderer.ask(asked)
    if "choices" not in told:
        if not isinstance(told.get("answer"), str) or not told["answer"].strip():
            raise ValueError("has no answer as text")
        return {"ids": ids, "answer": told["answer"]}
    choices, answer = told["choices"], told.get("answer")
    if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(each, str) and each for each in choices):
        raise ValueError("choices is no list of at least two texts")
    if isinstance(answer, bool) or not isinstance(answer, int) or not 0 <= answer < len(choices):
        raise ValueError(f"answer is no index of choices, 0 to {len(choices) - 1}")
    return {"ids": ids, "choices": [_choice(asked, choice, ids, renderer) for choice in choices], "answer": answer}


def _choice(asked: str | tuple[Any, ...], choice: str, ids: list[int], renderer: Renderer) -> list[int]:
    """An answer's tokens as they follow the prompt; after plain text they are set off by a space."""
    if renderer.has_template or not isinstance(asked, str):
        return renderer.encode(choice, is_chat=True)
    apart = choice if asked[-1].isspace() or choice[0].isspace() else f" {choice}"
    whole = renderer.ask(asked + apart)
    return whole[len(ids) :] if whole[: len(ids)] == ids else renderer.encode(apart, is_chat=True)
