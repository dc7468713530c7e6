"""Shapes: techniques, what they promise and cost, and rules that speak for or against them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from launcher.advice.condition import Condition
from launcher.advice.facts import Value


class Stage(StrEnum):
    """Techniques are introduced in this order, one by one, each with measuring before and after."""

    QUANTIZATION = "quantization"
    SPECULATION = "speculation"
    PD = "pd"
    MORE = "more-of-the-same"
    """No acceleration: the last resort, or the first when nothing else is short."""


class Technique(StrEnum):
    """What can be recommended."""

    FP8 = "fp8"
    INT8 = "int8"
    INT4 = "int4"
    NGRAM = "ngram"
    DRAFT = "draft"
    PD = "pd"
    REPLICAS = "replicas"


class Verdict(StrEnum):
    """On one technique. The first of these that a rule speaks decides: the order settles conflicts."""

    NO = "no"
    FIRST_MEASURE = "first-measure"
    YES = "yes"
    CANNOT_SAY = "cannot-say"
    """No rule speaks, and some lack facts."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What a technique is said to change, as a range over its sources."""

    metric: str
    low: float | None
    """``None``: there is no figure worth repeating."""
    high: float | None
    unit: str
    """``x`` for a factor, ``%`` for a change."""
    source: str
    measure: str
    """How to know for your own traffic."""

    @property
    def text(self) -> str:
        """For people."""
        if self.low is None or self.high is None:
            return f"{self.metric}: no figure worth repeating"
        if self.unit == "x":
            return f"{self.metric} {self.low:g}x to {self.high:g}x"
        span = f"{self.low:+g} %" if self.low == self.high else f"{self.low:+g} to {self.high:+g} %"
        return f"{self.metric} {span}"


@dataclass(frozen=True, slots=True)
class About:
    """One technique: where it belongs, how it is recognized when it is used already, what it brings and costs."""

    stage: Stage
    title: str
    in_use: Mapping[str, tuple[Value, ...]]
    """Values of facts that mean it is used."""
    gains: tuple[Gain, ...]
    costs: tuple[str, ...]
    keys: str
    """What a profile says to use it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Speaks for or against techniques when all its conditions hold; says nothing when one does not."""

    name: str
    """``<topic>/<what it is about>``."""
    techniques: tuple[Technique, ...]
    verdict: Verdict
    when: tuple[Condition, ...]
    because: str
    """The reason, with the facts of its conditions in braces: figures must be in it."""
    source: str
    change: str = ""
    """Of a no: what would have to change."""
    of_need: bool = False
    """Whether to introduce a technique; of one that is in use, its success would look like that."""


NEVER_IN_USE: Mapping[str, tuple[Value, ...]] = MappingProxyType({})
