"""Decision: the parts of an engine's memory beside its KV cache, each with how it is known."""

from collections.abc import Mapping

from launcher.inventory import Checkpoint
from launcher.profile import Device
from launcher.sizing import estimates
from launcher.sizing.draft import MODELS, Draft, draft_of
from launcher.sizing.families import UnknownArchitectureError
from launcher.sizing.matrices import matrices
from launcher.sizing.measured import Measured
from launcher.sizing.models import ModelFacts
from launcher.sizing.scheme import UnknownSchemeError
from launcher.sizing.settings import EngineSettings
from launcher.sizing.size import Part
from launcher.sizing.understood import Understood, understand
from launcher.sizing.weights import counted, measured

_COUNTED_ERROR = 0.02
"""Of counted weights: what a checkpoint has beside its linear layers, and how kernels pad them."""
_MEASURED_ERROR = 0.01
"""Between two starts alike."""


def weights(settings: EngineSettings, model: Understood) -> Part | None:
    facts, architecture, sharding = model.facts, model.architecture, settings.sharding
    is_online = model.scheme is not None and not facts.quantization
    if facts.tensors and not is_online:
        found = measured(facts.tensors, model.float_size, architecture, sharding)
        error = 0 if model.scheme is None else int(found * _COUNTED_ERROR)  # kernels repack what is quantized
        return Part("weights", found, error, "its tensors")
    if architecture.is_countable:
        found = counted(matrices(architecture), model.scheme, model.float_size, architecture, sharding)
        exact = model.scheme is None and not architecture.is_assumed and not facts.config.get("vision_config")
        error = 0 if exact else int(found * (0.1 if architecture.is_assumed else _COUNTED_ERROR))
        return Part("weights", found, error, "counted from its configuration")
    if facts.weight_bytes:
        found = facts.weight_bytes // (sharding.tensor * sharding.pipeline)
        return Part("weights", found, int(found * 0.1), "the size of its files")
    return None


def draft_beside(
    settings: EngineSettings, target: Understood, models: Mapping[Checkpoint, ModelFacts], element: int
) -> tuple[Draft | None, str]:
    """The draft, and what is not known of it."""
    speculation = settings.speculation
    if speculation is None:
        return None, ""
    drafted: Understood | None = None
    if speculation.method in MODELS:
        facts = models.get(speculation.draft) if speculation.draft else None
        if facts is None or speculation.draft is None:
            name = speculation.draft.name if speculation.draft else "the draft"
            return None, f"{name}, the draft, is not on this machine, nor shipped with Duet"
        try:
            drafted = understand(settings, speculation.draft, facts, target.dtype)
        except (UnknownArchitectureError, UnknownSchemeError) as exc:
            return None, f"{speculation.draft.name}: {exc}"
        if not facts.tensors and not drafted.architecture.is_countable:
            return None, f"{speculation.draft.name}: its weights are neither there nor described"
    found = draft_of(
        settings,
        target.architecture,
        target.scheme,
        drafted.architecture if drafted else None,
        drafted.facts.tensors if drafted else (),
        drafted.scheme if drafted else None,
        float_size=target.float_size,
        element=element,
    )
    return found, ""


def others(settings: EngineSettings, model: Understood, draft: Draft | None) -> list[Part]:
    parts = []
    if draft is not None:
        source = "its tensors" if draft.is_measured else "counted from its configuration"
        parts.append(Part("draft", draft.weights, 0 if draft.is_measured else draft.weights // 20, source))
    known = ("LoRA adapters", "activations", "CUDA graphs", "libraries")
    found = (
        (estimates.adapters(model.architecture, settings, model.float_size), estimates.ADAPTERS_ERROR),
        (estimates.activations(model.architecture, settings, model.float_size), estimates.ACTIVATIONS_ERROR),
        (estimates.graphs(model.architecture, settings), estimates.GRAPHS_ERROR),
        (estimates.runtime(settings), estimates.RUNTIME_ERROR[settings.device]),
    )
    for name, (amount, error) in zip(known, found, strict=True):
        if amount and not (settings.device is Device.CPU and name == "activations"):
            parts.append(Part(name, amount, int(amount * error), "estimated"))
    return parts


def calibrated(parts: list[Part], before: Measured) -> list[Part]:
    """With what an engine alike has measured; what it set apart for graphs is in its activations."""
    if before.consumed is None or before.activations is None:
        return parts
    weights = before.weights or sum(part.bytes for part in parts if part.name in {"weights", "draft"})
    found = (
        ("weights", weights),
        ("libraries", max(0, before.consumed - weights)),
        ("activations", before.activations),
    )
    return [Part(name, amount, int(amount * _MEASURED_ERROR), "measured before") for name, amount in found]
