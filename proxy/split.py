"""Contract shape: how requests are divided among pools by shares, and the experiment that compares two of them.

Whoever asks is put into one of :data:`BUCKETS` buckets, and each bucket belongs to one arm. An arm is a pool.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from proxy.pools import MAIN

_STRICT = ConfigDict(extra="forbid", strict=True)

BUCKETS = 1000
OF_IDS = r"^[a-z0-9][a-z0-9._-]{0,63}$"
"""Ids of splits: they name folders."""
Percent = Annotated[float, Field(ge=0, le=100)]
Positive = Annotated[float, Field(gt=0)]


class SplitBy(StrEnum):
    """What stays with one arm."""

    SESSION = "session"
    """A conversation, as session affinity knows it; without a name all of a client's key; without one each request."""
    CLIENT = "client"
    """All requests of one of ``proxy.client_keys``; without a key each request is by itself."""
    REQUEST = "request"
    """Nothing: each request is by itself."""


@dataclass(frozen=True, slots=True)
class Guards:
    """When an experiment ends by itself. Each is judged so that chance hardly ever ends it."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    errors: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """So much more of the requests of B than of A may fail, 0 to 1."""
    ttft: Annotated[float, Field(gt=1)] = 1.5
    """So many times A's may B's TTFT be, by the geometric mean."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Compares arm B with arm A."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    a: str
    """A pool, whose requests are what B's are compared with. All go there when a guard ends the experiment."""
    b: str
    ttft: Positive | None = None
    """Objective in seconds: a request is good when it was answered and met the objectives that are given."""
    tpot: Positive | None = None
    """Objective in seconds for each output token after the first."""
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Smaller differences do not matter: a part of TTFT and TPOT, and this part of all requests for goodput."""
    minimum_requests: Annotated[int, Field(ge=10)] = 200
    """Of each arm, before anything is said."""
    minimum_buckets: Annotated[int, Field(ge=10)] = 30
    """Of each arm, before anything is said; counted so that one with most of the requests counts as few."""
    guards: Guards = field(default_factory=Guards)


@dataclass(frozen=True, slots=True)
class Split:
    """Divides the requests that no rule of ``proxy.pools`` takes."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    id: Annotated[str, Field(pattern=OF_IDS)]
    shares: Mapping[str, Percent]
    """Percent of the buckets, by pool; 100 together. An arm may have 0."""
    by: SplitBy = SplitBy.SESSION
    salt: str = ""
    """Another one makes other buckets. With the same, a share that grows only takes buckets, and moves no others."""
    shadow: str | None = None
    """This pool gets copies of requests of other arms; what it answers is measured and thrown away."""
    shadow_percent: Annotated[float, Field(gt=0, le=100)] = 100.0
    """Of the buckets, those whose requests are copied."""
    shadow_at_once: Annotated[int, Field(ge=1)] = 4
    """Copies that each worker has under way at most; above it none are made."""
    experiment: Experiment | None = None


def split_faults(split: Split, pools: Collection[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with a split before ``pools``, the names without ``main``: the key below ``split``, and why."""
    experiment = split.experiment
    if experiment is not None and experiment.a == experiment.b:
        yield "experiment.b", f"a pool is not compared with itself: name another one than {experiment.a}"
        return
    known = (MAIN, *pools)
    there = f"there are: {', '.join(known)}"
    if unknown := [arm for arm in split.shares if arm not in known]:
        yield "shares", f"there is no pool {unknown[0]}; {there}"
    if abs(sum(split.shares.values()) - 100) > 0.01:
        yield "shares", f"they are percent and come to {sum(split.shares.values()):g}, not to 100"
    if split.shadow is not None and split.shadow not in known:
        yield "shadow", f"there is no pool {split.shadow}; {there}"
    if split.shadow is not None and split.shares.get(split.shadow):
        yield "shadow", f"{split.shadow} has a share of the requests itself: copies are for a pool without one"
    if experiment is None:
        return
    if experiment.a not in split.shares:
        yield "experiment.a", f"{experiment.a} is no arm of shares: {', '.join(split.shares)}"
    if experiment.b not in split.shares and experiment.b != split.shadow:
        yield "experiment.b", f"{experiment.b} is neither an arm of shares nor the shadow"
