"""Contract shape: which requests go to which pool of instances; ``pools`` of the proxy's part of a profile.

A pool is a set of instances that serve the same model under the same names with other weights or settings.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar, TypeVar

from pydantic import AfterValidator, ConfigDict, Field

_STRICT = ConfigDict(extra="forbid", strict=True)

MAIN = "main"
"""How the main pool is called where it is spoken of; :attr:`proxy.topology.Instance.pool` of its instances is empty."""
OF_POOLS = r"^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$"
"""Names of pools: they are a part of instances' names."""
PoolName = Annotated[str, Field(pattern=OF_POOLS)]
Text = Annotated[str, Field(min_length=1)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
Tokens = Annotated[int, Field(ge=1)]


class PoolFallback(StrEnum):
    """What happens to a request whose pool has no usable instance."""

    OTHER = "other"
    """Another pool serves it, and the answer's headers say so."""
    REFUSE = "refuse"
    """The client gets 503 with the pool's name."""


Bounds = TypeVar("Bounds", "PromptTokens", "Between")


def _in_order(given: Bounds) -> Bounds:
    if given.min is None and given.max is None:
        raise ValueError("give min, max or both")
    if given.min is not None and given.max is not None and given.min > given.max:
        raise ValueError(f"nothing is {given.min:g} or more and {given.max:g} at most: min is above max")
    return given


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """Tokens of a prompt; exact for token ids, else a quarter of its bytes."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    min: Tokens | None = None
    """So many or more."""
    max: Tokens | None = None
    """So many at most."""


@dataclass(frozen=True, slots=True)
class Between:
    """Numbers, bounds included."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    min: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """So much or more."""
    max: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """So much at most."""

    def has(self, value: float) -> bool:
        """Whether a number is between them."""
        return (self.min is None or value >= self.min) and (self.max is None or value <= self.max)


@dataclass(frozen=True, slots=True)
class When:
    """All that is given must hold."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    prompt_tokens: Annotated[PromptTokens, AfterValidator(_in_order)] | None = None
    """Tokens of the prompt, bounds included; exact for token ids, else a quarter of its bytes."""
    models: tuple[Text, ...] = ()
    """The request asks for one of these: names, aliases or adapters that are served."""
    header: Mapping[HeaderName, Text] = field(default_factory=dict)
    """The request has all of these headers with these values, e.g. `{x-tier: batch}`."""
    tags: tuple[Text, ...] = ()
    """The request has one of these tags, in the header of `tags_header` or in its body's `metadata.tags`."""
    temperature: Annotated[Between, AfterValidator(_in_order)] | None = None
    """The request's temperature, bounds included; 1 when it gives none."""
    expected_acceptance: Annotated[Between, AfterValidator(_in_order)] | None = None
    """Of draft tokens, 0 to 1, as answers of the same task had it lately. A task of which too little is known counts as
    1, so that it is measured, and so does every `explore`-th request. Needs `speculation.report_acceptance`."""

    @property
    def is_empty(self) -> bool:
        """Whether it holds for every request."""
        return self == When()


@dataclass(frozen=True, slots=True)
class PoolRule:
    """Sends some requests to a pool."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    pool: Text
    """A name below `pools`, or `main`."""
    when: When = field(default_factory=When)
    """Which requests; all for a last rule without it."""
    fallback: PoolFallback | None = None
    """In place of `proxy.pools.fallback`, for requests of this rule."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Which requests go to which pool. Those that no rule takes go to the main pool."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    rules: tuple[PoolRule, ...] = ()
    """In order: the first whose `when` holds decides."""
    fallback: PoolFallback = PoolFallback.OTHER
    """When a pool has no usable instance: `other`, another one serves, the main pool before the rest by name; or
    `refuse`, with status 503."""
    tags_header: HeaderName = "x-duet-tags"
    """Holds the tags of a request, separated by commas."""
    task_header: HeaderName = "x-duet-task"
    """Names the task of a request, whose acceptance is remembered; without it requests of one client for one model with
    the same system prompt are a task."""
    explore: Annotated[int, Field(ge=0)] = 20
    """Every so many-th request of a task counts as if nothing were known of the task: so what changes is noticed; 0:
    none."""


def by_name(pool: str) -> str:
    """How a pool is called, by :attr:`proxy.topology.Instance.pool`."""
    return pool or MAIN


def rule_faults(rules: tuple[PoolRule, ...], pools: Collection[str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What is wrong with rules before ``pools``, the names without ``main``: the path below ``rules``, and why."""
    known = (MAIN, *pools)
    for number, rule in enumerate(rules):
        if rule.pool not in known:
            yield (number, "pool"), f"there is no pool {rule.pool}; there are: {', '.join(known)}"
        if rule.when.is_empty and number < len(rules) - 1:
            yield (
                (number, "when"),
                "without a condition it takes all requests, so that no later rule is reached: give one, or make it the "
                "last rule",
            )
        elif (first := next((n for n in range(number) if _covers(rules[n].when, rule.when)), None)) is not None:
            yield (number,), f"rule {first} takes all requests that it would take: it is never reached; move it up"


def _covers(earlier: When, later: When) -> bool:
    """Whether all requests of the later are those of the earlier, as far as the conditions themselves tell."""
    if earlier.is_empty:
        return False  # said of that rule
    headers = {name.lower(): value for name, value in later.header.items()}
    return (
        _inside(later.prompt_tokens, earlier.prompt_tokens)
        and _some_of(later.models, earlier.models)
        and _some_of(later.tags, earlier.tags)
        and all(headers.get(name.lower()) == value for name, value in earlier.header.items())
        and _inside(later.temperature, earlier.temperature)
        and _inside(later.expected_acceptance, earlier.expected_acceptance)
    )


def _inside(narrow: Between | PromptTokens | None, wide: Between | PromptTokens | None) -> bool:
    if wide is None:
        return True
    if narrow is None:
        return False
    return (wide.min is None or (narrow.min or 0) >= wide.min) and (
        wide.max is None or (narrow.max is not None and narrow.max <= wide.max)
    )


def _some_of(later: tuple[str, ...], earlier: tuple[str, ...]) -> bool:
    return not earlier or (bool(later) and set(later) <= set(earlier))
