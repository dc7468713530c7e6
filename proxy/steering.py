"""Decision: how the settings want a request to go: by which policies, past which thresholds, knowing what of it."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from random import Random

from proxy.completion import Bypass, Completion
from proxy.headers import value_of
from proxy.hint import BLOCK_TOKENS, NO_HINT, Hint
from proxy.pool import Member
from proxy.prompt import hint_of, session_of
from proxy.selection import (
    Policy,
    least_in_flight,
    power_of_two,
    prefix_affinity,
    round_robin,
    session_affinity,
    ttft,
)
from proxy.settings import ConditionalPD, Settings
from proxy.settings import Policy as Name
from proxy.topology import Role

_NOTHING = nullcontext()


class Steering:
    """The policies and thresholds of some settings; ``random`` draws lots."""

    def __init__(self, settings: Settings, random: Random) -> None:
        policies: dict[Name, Policy] = {
            Name.LEAST_IN_FLIGHT: least_in_flight,
            Name.ROUND_ROBIN: round_robin,
            Name.POWER_OF_TWO: power_of_two(random),
            Name.PREFIX_AFFINITY: prefix_affinity,
            Name.SESSION_AFFINITY: session_affinity,
            Name.TTFT: ttft(settings.objectives.ttft, time.monotonic),
        }
        selection, self._pd = settings.selection, settings.pd
        self._prefill = policies[selection.prefill]
        self._decode = policies[selection.decode]
        self._session_header = selection.session_header.lower().encode()
        self._limit = selection.remembered_tokens // BLOCK_TOKENS
        used = {selection.prefill, selection.decode}
        self._by_session = Name.SESSION_AFFINITY in used
        self._by_blocks = bool(used & {Name.PREFIX_AFFINITY, Name.TTFT}) or self._pd.uncached_shorter_than is not None
        self.conditional = self._pd != ConditionalPD()
        """Whether :meth:`instead_of_pd` can apply to any request."""
        self._by_prompt = self._by_blocks or self._pd.shorter_than is not None

    def hint(self, completion: Completion, headers: Iterable[tuple[bytes, bytes]]) -> Hint:
        """What the policies and thresholds need to know of a request, and no more."""
        if not self._by_session and not self._by_prompt:
            return NO_HINT
        session = session_of(completion, value_of(headers, self._session_header)) if self._by_session else None
        if not self._by_prompt:
            return Hint(session=session)
        return hint_of(completion, session=session, hashed=self._by_blocks)

    def choose(self, candidates: Sequence[Member], hint: Hint) -> Member | None:
        """One of some instances of one role; ``None`` when there are none."""
        if not candidates:
            return None
        prefills = candidates[0].instance.role is Role.PREFILL
        return (self._prefill if prefills else self._decode)(candidates, hint)

    def instead_of_pd(self, hint: Hint, decode: Member) -> Bypass | None:
        """Why this instance shall serve a request alone that could go through prefill; ``None`` when it shall not."""
        pd = self._pd
        uncached = hint.tokens if pd.uncached_shorter_than is None else decode.load.uncached(hint)
        return instead_of_pd(pd, tokens=hint.tokens, uncached=uncached, idle=decode.in_flight == 0)

    def serving(self, member: Member, hint: Hint) -> None:
        """An instance is given a request: its prompt will be cached there."""
        if hint.blocks:
            member.load.prefixes.add(hint.blocks, self._limit)

    def prefilling(self, member: Member, hint: Hint) -> AbstractContextManager[None]:
        """Counts a prefill leg while it runs, and measures it when it ends well."""
        return self._leg(member, hint) if self._by_blocks else _NOTHING

    @contextmanager
    def _leg(self, member: Member, hint: Hint) -> Iterator[None]:
        load, started, done = member.load, time.monotonic(), False
        work = load.begin(load.uncached(hint))
        self.serving(member, hint)
        try:
            yield
            done = True
        finally:
            load.end(work, started, time.monotonic(), done=done)


def instead_of_pd(pd: ConditionalPD, *, tokens: int, uncached: int, idle: bool) -> Bypass | None:
    """The first threshold that applies to a prompt of so many tokens, and to the decode instance chosen for it."""
    if pd.shorter_than is not None and tokens < pd.shorter_than:
        return Bypass.SHORT_PROMPT
    if pd.uncached_shorter_than is not None and uncached < pd.uncached_shorter_than:
        return Bypass.CACHED_PROMPT
    if pd.idle_decode and idle:
        return Bypass.IDLE_DECODE
    return None
