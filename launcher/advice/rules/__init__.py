"""The rules, as data: what speaks for or against each technique, at which figures, and where that is known from."""

from launcher.advice.rule import Rule
from launcher.advice.rules import everything, pd, quantization, replicas, speculation

RULES: tuple[Rule, ...] = (
    *everything.RULES,
    *quantization.RULES,
    *speculation.RULES,
    *pd.RULES,
    *replicas.RULES,
)
"""Of those that speak the strictest verdict wins, in the order of ``Verdict``; all that speak it are told."""
