"""What is known of a kind of GPU by its name: its compute capability, which decides the kernels it can run."""

import re

DEFAULT_SHARE = 0.92
"""Of a GPU's memory, which vLLM 0.32 takes where ``gpu_memory_utilization`` is not given."""
CAPABILITIES: tuple[tuple[str, float], ...] = (
    (r"\bT4\b|\bRTX ?20|\bRTX [4568]000$|TITAN RTX", 7.5),
    (r"\bV100\b|TITAN V", 7.0),
    (r"\bP100\b", 6.0),
    (r"\bA100\b|\bA30\b|\bA800\b", 8.0),
    (r"\bA10\b|\bA10G\b|\bA16\b|\bA2\b|\bA40\b|\bRTX ?30|\bRTX A\d000|\bA[456]000\b", 8.6),
    (r"\bL4\b|\bL20\b|\bL40S?\b|\bRTX ?40|\bRTX \d000 Ada|\bAda\b", 8.9),
    (r"\bH100\b|\bH200\b|\bH800\b|\bH20\b|\bGH200\b", 9.0),
    (r"\bB100\b|\bB200\b|\bGB200\b", 10.0),
    (r"\bB300\b|\bGB300\b", 10.3),
    (r"\bRTX ?50|\bRTX PRO \d000 Blackwell|\bRTX PRO 6000\b", 12.0),
)
"""A pattern in the driver's or a person's name of it -> its capability; NVIDIA, https://developer.nvidia.com/cuda-gpus."""


MEMORY: tuple[tuple[str, int], ...] = (
    (r"\bT4\b", 15360),
    (r"\bL4\b", 23034),
    (r"\bA10G?\b", 23028),
    (r"\bL40S?\b", 46068),
    (r"\bH100\b", 81559),
    (r"\bH200\b", 143771),
)
"""A pattern in a name -> MiB, as the driver reports it, of kinds that exist in one size only (of H100: all but NVL)."""


def memory(kind: str | None) -> int | None:
    """Bytes of a GPU of this kind; ``None`` for one that is not known here, or comes in several sizes."""
    if kind is None or "NVL" in kind.upper():
        return None
    found = next((size for pattern, size in MEMORY if re.search(pattern, kind, re.IGNORECASE)), None)
    return None if found is None else found * 2**20


def capability(kind: str | None) -> float | None:
    """``None`` for a kind that is not known here: then nothing is concluded from it."""
    if kind is None:
        return None
    return next((number for pattern, number in CAPABILITIES if re.search(pattern, kind, re.IGNORECASE)), None)
