"""Whether speculation works in a deployment that has just become ready: one answer, and what engines count meanwhile.

It tells, and never fails the start: a deployment without speculation serves, too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx

from launcher.measure.target import Engine
from launcher.plan import Plan
from launcher.speculation.counters import GENERATING, Counts, counts
from launcher.speculation.schedule import k_at
from proxy.topology import Role

TOKENS = 64
_PATIENCE = 120.0
_LINES = 12
_THROUGH_PD = "The small grey cat sat on the warm kitchen floor and looked at the door.\n" * _LINES
_ALONE = "A tall old tree stood near the cold blue lake and shook in the evening wind.\n" * _LINES
"""Another text: of one that prefill has computed, decode would use the KV cache again."""
_COLLAPSE = 0.5
"""Acceptance through the pair over that of decode alone, below which the draft seems to lack the prompt's KV."""
_FROM_TEXT = frozenset({"ngram", "ngram_gpu", "suffix"})
"""Methods that draft what stood in the text before."""
_WITHOUT_KV = _FROM_TEXT | {"medusa"}
"""Methods that need nothing of the prompt's KV cache."""


@dataclass(frozen=True, slots=True)
class Configured:
    """Of the engines that generate."""

    method: str
    k: int | None
    at_one: int | None
    """K while one request runs; ``None``: the method counts for itself."""


@dataclass(frozen=True, slots=True)
class Said:
    """One line for people."""

    text: str
    is_warning: bool = False


def configured(plan: Plan) -> Configured | None:
    """By the plan's command lines; ``None`` where nothing speculates."""
    for engine in plan.engines:
        if engine.role.value not in GENERATING or "--speculative-config" not in engine.argv:
            continue
        settings = json.loads(engine.argv[engine.argv.index("--speculative-config") + 1])
        k, schedule = settings.get("num_speculative_tokens"), settings.get("num_speculative_tokens_per_batch_size")
        at_one = k_at(tuple((first, last, each) for first, last, each in schedule), 1) if schedule else k
        return Configured(settings.get("method") or "draft_model", k, at_one)
    return None


async def smoke(plan: Plan, client: httpx.AsyncClient) -> Said | None:
    """Ask; ``None`` where nothing speculates. Takes as long as an answer of 64 tokens, or two."""
    found = configured(plan)
    if found is None:
        return None
    if found.at_one == 0:
        return Said("speculation: not tried, as its schedule drafts nothing for one request")
    engines = [Engine(each.name, each.role.value, f"{each.url}/metrics") for each in plan.engines]
    try:
        through = await _asked(client, engines, plan.proxy.url, plan.served_name, _THROUGH_PD)
        alone = None
        if found.method not in _WITHOUT_KV and (decode := _first(plan, Role.DECODE)) is not None:
            alone = await _asked(client, engines, decode, plan.served_name, _ALONE)
    except (httpx.HTTPError, ValueError) as exc:
        return Said(f"speculation: not tried, {type(exc).__name__}: {exc}", is_warning=True)
    if isinstance(through, str) or isinstance(alone, str):
        return Said(f"speculation: not tried, {through if isinstance(through, str) else alone}")
    return judged(found, through, alone)


def judged(found: Configured, through: Counts | None, alone: Counts | None) -> Said:
    """What the counts of one answer mean; ``alone``: of decode without prefill, where that was asked, too."""
    if through is None:
        return Said("speculation: not tried, the engines do not tell what they count", is_warning=True)
    if through.drafts <= 0:
        return Said(
            f"speculation drafts nothing: {found.method} made no draft for a text that repeats; {_why(found)}", True
        )
    accepted = through.acceptance or 0.0
    if accepted <= 0:
        return Said(f"speculation: none of {through.drafted:.0f} drafted tokens was accepted; {_wrong(found)}", True)
    told = f"{through.drafts:.0f} drafts, {accepted:.0%} of their tokens accepted"
    if alone is not None and alone.acceptance and accepted < _COLLAPSE * alone.acceptance:
        return Said(
            f"speculation loses by PD: {told}, but {alone.acceptance:.0%} where decode computes the prompt itself; the "
            "draft seems to lack the prompt's KV cache: set the same speculation for prefill, or use ngram",
            is_warning=True,
        )
    return Said(f"speculation works: {told}")


def _why(found: Configured) -> str:
    if found.method.startswith("ngram"):
        return "lower speculation.prompt_lookup_min, or is the answer of the model no text that repeats?"
    return "look at the engine's log for why the draft is not used"


def _wrong(found: Configured) -> str:
    if found.method in _FROM_TEXT:
        return "this model does not go on with a text that repeats; see with your traffic: `launcher tune speculation`"
    return (
        "is the draft one for this very model, with its own precision (speculation.draft.quantization)? Try another, "
        "or `launcher tune speculation`"
    )


async def _asked(
    client: httpx.AsyncClient, engines: Sequence[Engine], url: str, model: str, prompt: str
) -> Counts | str | None:
    """What was counted meanwhile, or why nothing was asked."""
    body: Mapping[str, object] = {
        "model": model,
        "prompt": prompt,
        "max_tokens": TOKENS,
        "temperature": 0,
        "ignore_eos": True,
    }
    before = await counts(client, engines)
    answer = await client.post(f"{url}/v1/completions", json=body, timeout=_PATIENCE)
    if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
        return "the proxy asks clients for a key"
    if answer.status_code != httpx.codes.OK:
        return f"{url} answered {answer.status_code}: {answer.text[:200]}"
    after = await counts(client, engines)
    return None if before is None or after is None else after - before


def _first(plan: Plan, role: Role) -> str | None:
    return next((each.url for each in plan.engines if each.role is role), None)
