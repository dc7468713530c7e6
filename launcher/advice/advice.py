"""Shape: what is advised, and why."""

from collections.abc import Mapping
from dataclasses import dataclass

from launcher.advice.rule import Rule, Stage, Technique, Verdict
from launcher.advice.signs import Finding
from launcher.advice.situation import Fact, Situation


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule that speaks, with the facts it rests on."""

    rule: Rule
    text: str
    facts: Mapping[str, Fact]


@dataclass(frozen=True, slots=True)
class Undecided:
    """A rule that lacks facts and could make the verdict stricter, or be the first to speak."""

    rule: Rule
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of one technique."""

    technique: Technique
    verdict: Verdict
    """Of one in use: whether to keep it."""
    in_use: bool
    reasons: tuple[Reason, ...]
    """Those with the verdict first."""
    undecided: tuple[Undecided, ...]
    """None beside a no: it stands whatever they would say."""

    @property
    def change(self) -> tuple[str, ...]:
        """What would have to change before it is no longer a no."""
        return tuple(reason.rule.change for reason in self.reasons if reason.rule.verdict is Verdict.NO)


@dataclass(frozen=True, slots=True)
class Start:
    """A shipped profile to begin with."""

    profile: str
    overrides: tuple[str, ...]
    because: str


@dataclass(frozen=True, slots=True)
class Advice:
    """All of it."""

    situation: Situation
    bottlenecks: tuple[Finding, ...]
    judgements: tuple[Judgement, ...]
    """One for each technique, in the order of ``Technique``."""
    next_step: Judgement | None
    """The technique to introduce next; ``None`` when none will help."""
    withdraw: tuple[Judgement, ...]
    """Techniques in use that do harm."""
    skipped: tuple[Stage, ...]
    """Stages before that one which could not be judged."""
    start: Start | None
    verdict: Verdict
    """On the whole: that of the next step, else no, or that it cannot be said."""
