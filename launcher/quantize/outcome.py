"""Shape: what one quantization did and found; the report is made from it, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from launcher.quantize.gate.shape import Judgement, Speed, Verdict


@dataclass(frozen=True, slots=True)
class UnitScore:
    """How much one unit hurts when it alone is quantized; a unit is what the engine makes one layer of."""

    name: str
    """E.g. ``model.layers.3.mlp.gate_up_proj``."""
    parameters: int
    fisher: float
    """Nats of KL, estimated by one backward pass."""
    kl: float | None = None
    """Nats, measured; only of the fifth that is worst by the estimate."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A check that the quantizer itself does not make."""

    name: str
    is_ok: bool
    text: str
    """What was found, and the fix where it is not fine."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One recipe, tried."""

    number: int
    algorithm: str
    """For people: ``SmoothQuant + GPTQ``, ``round to nearest``..."""
    recipe: Mapping[str, Any]
    """As the worker got it."""
    kept: tuple[str, ...]
    """Units that stay in 16 bits or get a finer scheme because of their sensitivity."""
    kept_share: float
    """Of the model's linear weights."""
    size: int
    """Bytes of the checkpoint."""
    seconds: float
    guards: tuple[Guard, ...]
    judgement: Judgement | None = None
    """``None`` when a guard already refused it."""
    speed: Speed | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The whole."""

    verdict: Verdict
    headline: str
    """One sentence: what came out, and what to do next."""
    model: str
    scheme: str
    """``int8``, ``int4``, ``fp8``."""
    choice: str
    """Why this scheme for this hardware, and warnings that belong to it."""
    target: str
    """The hardware it is for, as people say it."""
    device: str
    """What the gate was served on."""
    seed: int
    command: str
    """That makes the same again."""
    versions: Mapping[str, str]
    """Of Duet, vLLM, llm-compressor, torch, transformers, compressed-tensors."""
    started: str
    """UTC, ISO 8601."""
    seconds: float
    baseline_size: int
    """Bytes of the 16-bit weights."""
    calibration: Mapping[str, Any]
    """Facts of the records (step ``prepare``)."""
    limits: Mapping[str, float]
    attempts: tuple[Attempt, ...]
    sensitivity: tuple[UnitScore, ...] = ()
    """Most sensitive first; empty when nothing asked for it."""
    published: str | None = None
    """The folder, when it was published."""
    forced: bool = False
    """Published although it did not pass."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """blake2b of model, calibration file, published checkpoint."""
    next_steps: tuple[str, ...] = ()
    """What to do now, as commands or sentences."""
