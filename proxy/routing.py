"""Decision: the pool that takes a request, by the rules of the settings."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from proxy.completion import Completion
from proxy.headers import value_of
from proxy.pools import MAIN, PoolFallback, PoolSettings, When
from proxy.prompt import tokens_of
from proxy.task import temperature_of

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes."""

    pool: str = ""
    """As :attr:`proxy.topology.Instance.pool` has it."""
    fallback: PoolFallback = PoolFallback.OTHER
    by_rule: bool = False
    """Whether a rule says so: then no split divides it."""


TO_MAIN = Route()


class Expected(Protocol):
    """Who knows what is to be expected of tasks."""

    def of(self, task: str) -> float:
        """Share of the draft tokens of its next request that will be accepted, 0 to 1."""
        ...


class Router:
    """The rules of some settings."""

    def __init__(self, settings: PoolSettings, acceptance: Expected | None = None) -> None:
        """``acceptance``: what is to be expected of a request's task, where any rule asks."""
        self._acceptance = acceptance
        self._rules = [
            (rule.when, Route("" if rule.pool == MAIN else rule.pool, rule.fallback or settings.fallback, True))
            for rule in settings.rules
        ]
        self._else = Route(fallback=settings.fallback)
        self._tags_header = settings.tags_header.lower().encode()

    def route(self, completion: Completion, headers: Headers, task: str | None = None) -> Route:
        """Of the first rule that takes the request; ``headers`` as the client sent them, ``task`` as it is called."""
        if not self._rules:
            return self._else
        expected = 1.0 if self._acceptance is None or task is None else self._acceptance.of(task)
        asked = _Asked(completion, headers, self._tags_header, expected)
        return next((route for when, route in self._rules if asked.fits(when)), self._else)


class _Asked:
    """What a request says, looked up once."""

    def __init__(self, completion: Completion, headers: Headers, tags_header: bytes, acceptance: float) -> None:
        self._acceptance = acceptance
        self._completion = completion
        self._headers = headers
        self._tags_header = tags_header
        self._tokens: int | None = None

    def fits(self, when: When) -> bool:
        """The cheap conditions come first: counting a prompt's tokens takes a while for a long one."""
        return (
            (not when.models or self._completion.document.get("model") in when.models)
            and all(value_of(self._headers, name.lower().encode()) == value for name, value in when.header.items())
            and (not when.tags or not self._tags().isdisjoint(when.tags))
            and (when.temperature is None or when.temperature.has(temperature_of(self._completion)))
            and (when.expected_acceptance is None or when.expected_acceptance.has(self._acceptance))
            and (when.prompt_tokens is None or self._fits_tokens(when.prompt_tokens.min, when.prompt_tokens.max))
        )

    def _fits_tokens(self, least: int | None, most: int | None) -> bool:
        if self._tokens is None:
            self._tokens = tokens_of(self._completion)
        return (least is None or self._tokens >= least) and (most is None or self._tokens <= most)

    def _tags(self) -> set[str]:
        """Of the header and of the body; there a list, or text as OpenAI's ``metadata`` wants its values."""
        metadata = self._completion.document.get("metadata")
        told = metadata.get("tags") if isinstance(metadata, dict) else None
        listed = [tag for tag in told if isinstance(tag, str)] if isinstance(told, list) else []
        texts = [value_of(self._headers, self._tags_header), told]
        return {*listed, *(tag.strip() for text in texts if isinstance(text, str) for tag in text.split(","))}
