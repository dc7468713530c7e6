"""Shape: what is asked of a server that is measured, as a YAML file says it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, JsonValue, model_validator

from launcher.profile.shape import Positive, Shape

Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(gt=0, le=1_000_000)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
"""Of words or tokens: more than any context, and made in a second."""
Temperature = Annotated[float, Field(ge=0, le=2)]


class Bounded(Shape):
    """Cut at both ends."""

    least: Count = 1
    most: Count = 100_000

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least {self.least} is more than most {self.most}")
        return self


class Uniform(Bounded):
    """Every whole number between two is as likely."""

    least: Count
    most: Count


class Normal(Bounded):
    """Around a mean, with most within twice the deviation; cut at ``least`` and ``most``."""

    mean: Annotated[float, Field(gt=0, le=1_000_000)]
    deviation: Annotated[float, Field(ge=0, le=1_000_000)]


class LogNormal(Bounded):
    """As real prompts and answers are: half below the median, a few very long; cut at ``least`` and ``most``."""

    median: Annotated[float, Field(gt=0, le=1_000_000)]
    sigma: Annotated[float, Field(ge=0, le=10)] = 0.5
    """Of the logarithm: 0.5 makes one of forty more than 2.7 times the median."""


class Length(Shape):
    """One of these."""

    constant: Count | None = None
    uniform: Uniform | None = None
    normal: Normal | None = None
    lognormal: LogNormal | None = None
    values: Annotated[list[Count], Field(min_length=1)] | None = None
    """Each as likely; one that stands there twice, twice as likely."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of constant, uniform, normal, lognormal and values, not {len(given) or 'none'}"
            )
        return self


class WeightedTemperature(Shape):
    """A temperature and how often it comes, against the others."""

    value: Temperature
    weight: Weight = 1.0


class SharedPrefix(Shape):
    """Text with which several requests begin, as a system prompt is."""

    share: Share = 1.0
    """Of the requests that begin with one."""
    words: Count
    number: Positive = 1
    """Different ones, each as often."""


class Ask(StrEnum):
    """What a made-up request wants."""

    WRITE = "write"
    """Free text that stands nowhere in the prompt."""
    REPEAT = "repeat"
    """Text of the prompt again, word by word: n-gram speculation's best case."""
    EDIT = "edit"
    """Code of the prompt again with a name changed."""
    ANSWER = "answer"
    """A short answer to a question about a long text."""


class Part(Shape):
    """Requests of one kind."""

    ask: Ask
    weight: Weight = 1.0
    """How often it comes, against the other parts."""
    chat: bool = True
    """By ``/v1/chat/completions``; else by ``/v1/completions``."""
    prompt_words: Length
    """Without the shared prefix; a word is some 1.3 tokens of English."""
    output_tokens: Length
    """At most."""
    ignore_eos: bool = False
    """Go on until ``output_tokens`` whatever the model would like; what it says then is often the same again and again,
    which makes speculation look good."""
    temperatures: Annotated[list[WeightedTemperature], Field(min_length=1)] = [WeightedTemperature(value=0.0)]
    shared_prefix: SharedPrefix | None = None
    parameters: dict[str, JsonValue] = {}
    """Any other of the request's body, e.g. ``top_p``."""


class Workload(Shape):
    """Made-up requests by parts, or records of real ones."""

    description: str = ""
    parts: list[Part] = []
    records: Path | None = None
    """JSON lines of real requests; a relative path begins at the workload's file."""
    max_tokens: Positive = 128
    """Of records that do not say it."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if bool(self.parts) == (self.records is not None):
            raise ValueError("give parts, which are made up, or records, which are real: exactly one of them")
        return self
