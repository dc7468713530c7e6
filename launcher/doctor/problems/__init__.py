"""All problems that are known, with what finds each."""

from launcher.doctor.problem import Check
from launcher.doctor.problems import capacity, engines, host, kv, logs, quantization, requests, speculation

CHECKS: tuple[Check, ...] = (
    *engines.CHECKS,
    *requests.CHECKS,
    *kv.CHECKS,
    *capacity.CHECKS,
    *speculation.CHECKS,
    *quantization.CHECKS,
    *logs.CHECKS,
    *host.CHECKS,
)
"""In the order in which they are told: what makes others happen first."""
