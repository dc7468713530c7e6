"""Combinations of settings that vLLM 0.32 does not support, or that do not do what they seem to: data with sources."""

from launcher.preflight.finding import Rule
from launcher.preflight.matrix import placement, precision, speculation
from launcher.preflight.matrix.combination import Combination

COMBINATIONS: tuple[Combination, ...] = (
    *precision.COMBINATIONS,
    *speculation.COMBINATIONS,
    *placement.COMBINATIONS,
)
RULES: tuple[Rule, ...] = tuple(combination.rule() for combination in COMBINATIONS)
