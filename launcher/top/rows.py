"""Decision: the lines of `launcher top`'s tables."""

import time
from collections.abc import Iterable

from rich.text import Text

from launcher.amounts import ago, speed
from launcher.top.numbers import number, percent
from launcher.top.overview import Failure, Instance, Pair
from launcher.top.table import Columns

INSTANCES = Columns(
    ("INSTANCE", "STATE", "IN FLIGHT", "RUNNING", "WAITING", "KV CACHE", "ACCEPTED", "TOKENS/S"),
    spare=("RUNNING", "ACCEPTED", "TOKENS/S", "WAITING", "KV CACHE", "IN FLIGHT"),
)
PAIRS = Columns(
    ("PREFILL", "DECODE", "STANDING", "PROVEN", "KV TOKENS", "TRANSFER", "REASON"),
    spare=("TRANSFER", "KV TOKENS", "PROVEN"),
    ends_in_text=True,
)
FAILURES = Columns(("FAILED", "STATUS", "REQUEST", "REASON"), spare=("REQUEST",), ends_in_text=True)
HEALTHS = {"ready": "bold green", "degraded": "bold yellow", "down": "bold red"}
_WORST_FIRST = ("refused", "out", "suspect", "failing", "trial", "untried", "away")
_STYLES = {"proven": "green", "working": "green", "failing": "yellow", "trial": "yellow"}
_BAD = frozenset({"refused", "out", "suspect"})


def instance_row(each: Instance) -> list[Text]:
    """Name, state and numbers."""
    numbers = (number(each.in_flight), number(each.running), number(each.waiting), percent(each.kv_cache_usage))
    more = (percent(each.acceptance_rate), number(each.generated_per_second))
    return [Text(each.name), _state(each), *map(Text, (*numbers, *more))]


def _state(each: Instance) -> Text:
    if each.frozen:
        return Text("frozen", "bold red")
    if not each.healthy:
        return Text(each.reason or "not healthy", "bold red")
    if each.draining:
        return Text("drained", "dim")
    if each.breaker != "closed":
        return Text("kept away from", "yellow")
    return Text("suspect", "yellow") if each.reason else Text("healthy", "green")


def worst_first(pairs: Iterable[Pair]) -> list[Pair]:
    """Those that need a look come first."""
    ranks = {standing: rank for rank, standing in enumerate(_WORST_FIRST)}
    return sorted(pairs, key=lambda pair: ranks.get(pair.standing, len(ranks)))


def pair_row(pair: Pair, now: float) -> list[Text]:
    """Names, standing, the last proof and what speaks against it."""
    style = "bold red" if pair.standing in _BAD else _STYLES.get(pair.standing, "dim")
    told = ("", "", "")
    if pair.proof is not None and pair.proof.verdict == "proven":
        told = (ago(pair.proof.at, now), number(pair.proof.tokens), speed(pair.proof.bytes_per_second))
    return [Text(pair.prefill), Text(pair.decode), Text(pair.standing, style), *map(Text, (*told, pair.reason))]


def failure_row(failure: Failure) -> list[Text]:
    """When, how, whose and why."""
    when = time.strftime("%H:%M:%S", time.localtime(failure.at))
    how = f"{failure.status} {failure.outcome.replace('_', ' ')}"
    return [Text(when), Text(how, "red"), Text(failure.request_id), Text(failure.reason)]
