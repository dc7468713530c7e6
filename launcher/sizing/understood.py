"""Decision: what an engine will make of a model."""

from dataclasses import dataclass

from launcher.inventory import Checkpoint
from launcher.sizing.architecture import Architecture
from launcher.sizing.families import architecture_of
from launcher.sizing.kv_cache import element_size
from launcher.sizing.models import ModelFacts
from launcher.sizing.scheme import Scheme, online, scheme_of
from launcher.sizing.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class Understood:
    """A model whose memory can be counted."""

    architecture: Architecture
    facts: ModelFacts
    scheme: Scheme | None
    float_size: int
    """Bytes of one number that is not quantized."""
    dtype: str


def understand(
    settings: EngineSettings, checkpoint: Checkpoint, facts: ModelFacts, dtype: str | None = None
) -> Understood:
    """What the engine will make of a model.

    Raises :class:`launcher.sizing.families.UnknownArchitectureError` or
    :class:`launcher.sizing.scheme.UnknownSchemeError`.
    """
    config = {**facts.config, **settings.overrides} if checkpoint == settings.model else facts.config
    architecture = architecture_of(config)
    told = scheme_of(facts.quantization)
    scheme = told or (online(settings.quantization) if settings.quantization and dtype is None else None)
    chosen = dtype or (architecture.dtype if settings.dtype == "auto" else settings.dtype)
    return Understood(architecture, facts, scheme, element_size("auto", chosen) or 2, chosen)
