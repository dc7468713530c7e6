"""Live state of the instances: health, failures, requests in flight. The configuration's part stays in the topology."""

import asyncio
import logging
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from proxy.agreement import Facts, Identity, disagreement, served_models
from proxy.breaker import Breaker
from proxy.config import ProxyConfig
from proxy.handoff.protocol import Source
from proxy.health.progress import Progress
from proxy.health.readings import Readings
from proxy.health.recently import Recently
from proxy.health.silence import Silence
from proxy.load import Load
from proxy.pair import Pair
from proxy.settings import Breaker as BreakerLimits
from proxy.settings import Settings
from proxy.topology import ConnectorKind, Instance, Role

logger = logging.getLogger(__name__)
_COMPLAINTS = 3


@dataclass(slots=True)
class Member:
    """One instance as it is now."""

    instance: Instance
    breaker: Breaker
    healthy: bool = False
    """Written by the health monitor only."""
    reason: str = "not probed yet"
    """Why it is not healthy; empty when it is."""
    readings: Readings | None = None
    """Its own counters at the last look."""
    progress: Progress = field(default_factory=lambda: Progress(Settings().frozen_after))
    silence: Silence = field(default_factory=Silence)
    recently: Recently = field(default_factory=Recently)
    told: str = ""
    """The text of its metrics, as it told it last."""
    told_at: float | None = None
    """When that was, by ``time.monotonic``."""
    agreement: float | None = None
    """Of the tokens of reference answers, those that it would choose, too; ``None`` when it was not compared."""
    draining: bool = False
    """Gets no new requests, by configuration."""
    unready: bool = False
    """That is because the cluster does not call it ready, and not because it is to end."""
    in_flight: int = 0
    last_turn: int = 0
    """The number of the last request that it was given, counted over the pool; 0 for none."""
    load: Load = field(default_factory=Load)
    source: Source | None = None
    """What it has told of itself to be told to decode; of this process only."""
    observed: Facts = field(default_factory=dict)
    """What it says of itself."""
    identified: bool = False
    """Whether it was asked since it runs."""

    @property
    def identity(self) -> Identity:
        """What is known of it: what it says, and for the rest what its configuration says."""
        return Identity(self.instance.name, {**self.instance.fingerprint, **self.observed})

    @property
    def drained(self) -> bool:
        """Whether it is kept from requests on purpose; an instance that is not ready since it is down is not."""
        return self.draining and (self.healthy or not self.unready)

    @property
    def usable(self) -> bool:
        """Whether it may get requests, if its breaker admits them."""
        return self.healthy and not self.draining


class Pool:
    """All instances of a topology, which may change; an instance that stays keeps its state."""

    def __init__(self, config: ProxyConfig) -> None:
        self._limits: BreakerLimits = config.settings.breaker
        self._patience = config.settings.frozen_after
        self._proves = config.settings.canary.enabled
        self.attention = asyncio.Event()
        """Set when something has happened that a canary should look into."""
        self._pairs: dict[tuple[str, str], Pair] = {}
        self._turns = 0
        self.members: tuple[Member, ...] = ()
        self.connector: ConnectorKind | None = None
        self.models: frozenset[str] = frozenset()
        """Names that clients may ask for."""
        self.follow(config)

    def follow(self, config: ProxyConfig, unready: Collection[str] = ()) -> None:
        """Take over topology and draining; requests in flight on an instance that is gone are finished.

        ``unready``: those of the draining ones that may be ready again.
        """
        known = {_place(member.instance): member for member in self.members}
        self.members = tuple(
            known.get(_place(instance)) or Member(instance, Breaker(self._limits), progress=Progress(self._patience))
            for instance in config.topology.instances
        )
        for member, instance in zip(self.members, config.topology.instances, strict=True):
            member.instance = instance  # its fingerprint may be another one
            member.draining = instance.name in config.draining
            member.unready = instance.name in unready
        self.connector = config.topology.connector
        names = {member.instance.name for member in self.members if _place(member.instance) in known}
        self._pairs = {key: pair for key, pair in self._pairs.items() if names.issuperset(key)}
        self._compare()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the pools that the instances are in, the main one's first, if it has any."""
        return tuple(sorted({member.instance.pool for member in self.members}))

    def uses_pd(self, pool: str) -> bool:
        """Whether requests of a pool are to go through prefill and decode; not where all its instances do both."""
        roles = {member.instance.role for member in self.members if member.instance.pool == pool}
        return self.connector is not None and roles != {Role.AGGREGATED}

    def usable(self, *roles: Role, pool: str | None = None) -> list[Member]:
        """The members of some roles that serve now, in the order of the topology; of one pool, or of all."""
        return [
            member
            for member in self.members
            if member.usable and member.instance.role in roles and pool in (None, member.instance.pool)
        ]

    def candidates(self, *roles: Role, without: Collection[str] = (), pool: str | None = None) -> list[Member]:
        """Those of the usable members that their breakers admit.

        Failing these, those that at least answer: a breaker spares clients a bad instance when there is a better one,
        and three requests on which an engine fails shall not shut out everybody else.
        """
        usable = self.usable(*roles, pool=pool)
        if without:
            usable = [member for member in usable if member.instance.name not in without]
        now = time.monotonic()
        admitted = [member for member in usable if member.breaker.admits(now)]
        return admitted or [member for member in usable if member.breaker.answers]

    def partners(self, prefill: Member, decodes: list[Member]) -> list[Member]:
        """Those to which this prefill instance may hand KV over."""
        now = time.monotonic()
        return [decode for decode in decodes if self.pair(prefill, decode).admits(now)]

    def has_pair(self, pool: str) -> bool:
        """Whether some prefill instance of a pool may hand KV over to some decode instance of it."""
        decodes = self.candidates(Role.DECODE, pool=pool)
        return any(self.partners(prefill, decodes) for prefill in self.candidates(Role.PREFILL, pool=pool))

    def pair(self, prefill: Member, decode: Member) -> Pair:
        """How hand-overs between the two went."""
        key = (prefill.instance.name, decode.instance.name)
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pairs[key] = Pair(*key, self._limits, proves=self._proves, wake=self.attention.set)
            self._judge(pair, prefill, decode)
        return pair

    def forgive(self, member: Member) -> None:
        """It is another process now, or has recovered: what was before is no evidence any more."""
        member.breaker = Breaker(self._limits)
        member.source = None
        self._pairs = {key: pair for key, pair in self._pairs.items() if member.instance.name not in key}
        member.observed, member.identified = {}, False
        self.attention.set()

    def identify(self, member: Member, observed: Facts) -> None:
        """Take over what it says of itself; its pairs are judged again."""
        member.observed, member.identified = observed, True
        self._compare()

    def _compare(self) -> None:
        self.models = served_models(member.identity for member in self.members)
        for prefill, decode in self.couples():
            self._judge(self.pair(prefill, decode), prefill, decode)

    def _judge(self, pair: Pair, prefill: Member, decode: Member) -> None:
        refused = disagreement(prefill.identity, decode.identity)
        if refused == pair.refused:
            return
        if refused:
            logger.warning("no KV goes from %s to %s: %s", pair.prefill, pair.decode, refused)
        pair.refused = refused
        self.attention.set()

    def suspect(self, member: Member, reason: str) -> None:
        """Something speaks against all hand-overs from or to it."""
        now = time.monotonic()
        for pair in self.pairs_of(member):
            pair.suspect(now, reason)

    def blamed(self) -> dict[str, str]:
        """Instances none of whose pairs works, though their partners work with others; and why, by name.

        When nobody works with anybody, nobody can say whose fault it is.
        """
        pairs = self._serving()
        now = time.monotonic()
        well = {name for pair in pairs if pair.admits(now) for name in (pair.prefill, pair.decode)}
        found = {}
        for member in self.members:
            name = member.instance.name
            own = [pair for pair in pairs if name in (pair.prefill, pair.decode)]
            partners = {pair.prefill if name == pair.decode else pair.decode for pair in own}
            if own and name not in well and partners & well and all(pair.reason for pair in own):
                found[name] = f"none of its pairs works: {own[0].reason}"
        return found

    def complaints(self) -> str:
        """What speaks against the pairs that could serve."""
        said = [f"{p.prefill} to {p.decode}: {p.reason or 'not proven yet'}" for p in self._serving()]
        return "; ".join(said[:_COMPLAINTS]) + (f"; and {len(said) - _COMPLAINTS} more" if said[_COMPLAINTS:] else "")

    def _serving(self) -> list[Pair]:
        """The pairs of which both instances serve."""
        return [self.pair(*couple) for couple in self.couples() if all(member.usable for member in couple)]

    def couples(self) -> list[tuple[Member, Member]]:
        """All prefill instances with all decode instances of their pool."""
        by_role = {role: [each for each in self.members if each.instance.role is role] for role in Role}
        return [
            (prefill, decode)
            for prefill in by_role[Role.PREFILL]
            for decode in by_role[Role.DECODE]
            if prefill.instance.pool == decode.instance.pool
        ]

    def pairs(self) -> list[Pair]:
        """All pairs of a prefill and a decode instance, and how hand-overs between them went."""
        return [self.pair(prefill, decode) for prefill, decode in self.couples()]

    def pairs_of(self, member: Member) -> list[Pair]:
        """Those of one instance."""
        return [self.pair(*couple) for couple in self.couples() if any(each is member for each in couple)]

    @contextmanager
    def using(self, member: Member) -> Iterator[None]:
        """Counts one request in flight."""
        self._turns += 1
        member.last_turn = self._turns
        member.in_flight += 1
        breaker = member.breaker  # another one takes its place when the instance is forgiven
        trial = breaker.begin()
        try:
            yield
        finally:
            member.in_flight -= 1
            if trial:
                breaker.give_back()


def _place(instance: Instance) -> Instance:
    """An instance stays the same one whatever its fingerprint."""
    return replace(instance, fingerprint={})
