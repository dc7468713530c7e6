"""Shape: a measured number and how sure it is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A value within bounds of 95 % confidence, two-sided; bounds are infinite where data do not suffice for any."""

    value: float
    low: float
    high: float
