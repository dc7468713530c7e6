"""Shape: what the user asks for."""

from dataclasses import dataclass, field
from pathlib import Path

from launcher.quantize.gate.shape import Limits
from launcher.quantize.recipe import Algorithm
from launcher.quantize.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Request:
    """One quantization."""

    model: str
    """Folder, hub id in the cache, or bundled name."""
    calibration: Path
    out: Path
    scheme: Scheme | None = None
    """``None``: the one for the hardware."""
    task: Path | None = None
    profile: str | None = None
    """Whose device, precision of the KV cache and parallelism are used; ``None``: defaults of this machine."""
    target: str | None = None
    """Hardware that will serve it; ``None``: this machine's."""
    tensor_parallel: int | None = None
    """``None``: as the profile says, else 1."""
    records: int = 512
    held_out: int = 64
    max_tokens: int = 2048
    seed: int = 0
    fast: bool = False
    algorithm: Algorithm | None = None
    ignore: tuple[str, ...] = ()
    """Layers that stay in 16 bits besides the usual ones: names, or expressions behind ``re:``."""
    attempts: int = 3
    force: bool = False
    """Go on with too few records, or with experts that no record reaches."""
    publish_anyway: bool = False
    limits: Limits = field(default_factory=Limits)
    command: str = ""
    """That asked for it."""
