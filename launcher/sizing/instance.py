"""Decision: the size of one engine, from its settings and from what is known of its models."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from launcher.inventory import Checkpoint
from launcher.profile import Device
from launcher.sizing import estimates
from launcher.sizing.architecture import Architecture, UnknownArchitectureError, architecture_of
from launcher.sizing.draft import MODELS, Draft, draft_of
from launcher.sizing.kv_cache import InFlight, Layout, element_size, layer_caches, layout
from launcher.sizing.measured import Measured
from launcher.sizing.models import ModelFacts
from launcher.sizing.scheme import Scheme, UnknownSchemeError, online, scheme_of
from launcher.sizing.settings import EngineSettings
from launcher.sizing.size import InstanceSize, KVSize, Part, Verdict
from launcher.sizing.weights import counted, matrices, measured, parameters

_COUNTED_ERROR = 0.02
"""Of counted weights: what a checkpoint has beside its linear layers, and how kernels pad them."""
_MEASURED_ERROR = 0.01
"""Between two starts alike."""
_SIXTEEN_BITS = "16 bit"


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

    Raises :class:`UnknownArchitectureError` or :class:`UnknownSchemeError`.
    """
    config = {**facts.config, **settings.overrides} if checkpoint == settings.model else facts.config
    architecture = architecture_of(config)
    told = scheme_of(facts.quantization)
    scheme = told or (online(settings.quantization) if settings.quantization and dtype is None else None)
    chosen = dtype or (architecture.dtype if settings.dtype == "auto" else settings.dtype)
    return Understood(architecture, facts, scheme, element_size("auto", chosen) or 2, chosen)


def size(
    name: str,
    role: str,
    settings: EngineSettings,
    models: Mapping[Checkpoint, ModelFacts],
    *,
    devices: tuple[str, ...] = (),
    card: int | None = None,
    margin: float = 0.2,
    before: Measured | None = None,
) -> InstanceSize:
    """Of the engine ``name``, each of whose devices shows it ``card`` bytes (``None``: not known).

    ``before`` is what an earlier start of an engine alike told: it takes the place of estimates.
    """
    known = [
        Part(
            "libraries",
            amount := estimates.runtime(settings),
            int(amount * estimates.RUNTIME_ERROR[settings.device]),
            "estimated",
        )
    ]
    if settings.kv_memory is not None:
        known.append(Part("KV cache", settings.kv_memory, 0, "the profile"))
    empty = InstanceSize(
        name=name,
        role=role,
        devices=devices,
        sharding=_sharding(settings),
        model=settings.model.name,
        precision="",
        parameters=None,
        parts=tuple(known),
        card=card,
        budget=None if card is None else _budget(settings, card),
        kv=None,
        margin=margin,
        verdict=Verdict.UNKNOWN,
    )
    facts = models.get(settings.model)
    if facts is None:
        return replace(empty, unknown=(f"{settings.model.name} is not on this machine, nor shipped with Duet",))
    try:
        model = understand(settings, settings.model, facts)
    except (UnknownArchitectureError, UnknownSchemeError) as exc:
        return replace(empty, unknown=(f"{settings.model.name}: {exc}",))
    unknown = []
    element = element_size(settings.kv_dtype, model.dtype)
    if element is None:
        unknown.append(f"the KV cache's format {settings.kv_dtype} is not counted")
    draft, problem = _draft(settings, model, models, element or 2)
    if problem:
        unknown.append(problem)
    weights = _weights(settings, model)
    if weights is None:
        unknown.append(f"{settings.model.name}: its weights are neither there nor described")
    parts = [part for part in (weights, *_others(settings, model, draft)) if part is not None]
    parts = _calibrated(parts, before) if before is not None else parts
    found = replace(
        empty,
        precision=_precision(model, settings),
        parameters=parameters(matrices(model.architecture)) if model.architecture.is_countable else None,
        parts=tuple(parts),
        unknown=tuple(unknown),
        remarks=tuple(_remarks(settings, model)),
    )
    if element is None:
        return found
    cache = cache_layout(settings, model.architecture, draft, element)
    kv = _kv(found, settings, model.architecture, cache)
    return replace(found, kv=kv, verdict=_verdict(found, kv))


def cache_layout(settings: EngineSettings, model: Architecture, draft: Draft | None, element: int) -> Layout:
    """Its KV cache with ``element`` bytes for each number."""
    layers = layer_caches(model, element=element, tensor_parallel=settings.sharding.tensor)
    retained = 0
    if settings.speculation and model.mtp_layers > 1 and settings.speculation.method == "mtp":
        retained = max(0, settings.speculation.tokens - 1)
    in_flight = InFlight(settings.batches * settings.step, retained)
    layers += draft.layers if draft else ()
    return layout(
        layers,
        block_size_of(settings, model),
        in_flight,
        windows=settings.windows,
        stages=settings.sharding.pipeline,
    )


def block_size_of(settings: EngineSettings, model: Architecture) -> int:
    """Tokens of a block as the engine chooses it: with latent attention by its kernel, so that it may differ."""
    if settings.device is Device.CPU:
        return settings.block_size or (16 if model.latent else 128)
    return settings.block_size or (64 if model.latent else 16)


def _weights(settings: EngineSettings, model: Understood) -> Part | None:
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


def _draft(
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


def _others(settings: EngineSettings, model: Understood, draft: Draft | None) -> list[Part]:
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


def _calibrated(parts: list[Part], before: Measured) -> list[Part]:
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


def _budget(settings: EngineSettings, card: int) -> int:
    """On CUDA the share of a device that the engine takes; with an explicit cache all of it; on a CPU what is there."""
    return card if settings.kv_memory is not None or settings.device is Device.CPU else int(card * settings.share)


def _kv(found: InstanceSize, settings: EngineSettings, model: Architecture, cache: Layout) -> KVSize | None:
    longest = settings.longest if settings.longest and settings.longest > 0 else model.longest
    if longest is None:
        return None
    memory, error = settings.kv_memory, 0
    if settings.blocks is not None:
        memory = settings.blocks * cache.bytes_per_block
    if memory is None:
        if found.budget is None:
            return None
        memory = max(0, found.budget - found.fixed)
        error = sum(part.error for part in found.parts)
    fits = cache.longest(memory, longest)
    if settings.longest == -1 and fits:
        longest = fits
    fewest = memory if not error else max(0, memory - int(found.fixed * found.margin))
    return KVSize(
        bytes=memory,
        error=error,
        bytes_per_token=cache.bytes_per_token,
        bytes_per_block=cache.bytes_per_block,
        block_size=cache.groups[0].block_size,
        blocks=cache.blocks(memory),
        tokens=cache.tokens(memory, longest),
        fewest_tokens=cache.tokens(fewest, longest),
        longest=fits,
        length=longest,
        concurrency=cache.concurrency(memory, longest),
        bytes_per_request=cache.blocks_per_request(longest) * cache.bytes_per_block,
        needed=cache.needed(longest),
    )


def _verdict(found: InstanceSize, kv: KVSize | None) -> Verdict:
    if kv is None or found.budget is None or found.unknown:
        return Verdict.UNKNOWN if kv is None or kv.needed <= kv.bytes else Verdict.DOES_NOT_FIT
    explicit = kv.error == 0
    need = found.fixed + (kv.bytes if explicit else kv.needed)
    if need > found.budget or kv.needed > kv.bytes:
        return Verdict.DOES_NOT_FIT
    return Verdict.TIGHT if need + found.fixed * found.margin > found.budget else Verdict.FITS


def _precision(model: Understood, settings: EngineSettings) -> str:
    if model.scheme is None:
        return "32 bit" if model.float_size == 4 else _SIXTEEN_BITS
    return model.scheme.name + ("" if model.facts.quantization else " (while loading)")


def _sharding(settings: EngineSettings) -> str:
    sharding = settings.sharding
    parts = [("TP", sharding.tensor), ("PP", sharding.pipeline), ("DP", sharding.data)]
    return " ".join(f"{name} {number}" for name, number in parts if number > 1)


def _remarks(settings: EngineSettings, model: Understood) -> list[str]:
    found = []
    if model.architecture.is_assumed:
        found.append(f"{model.architecture.name} is not known here: counted as if it were like Llama")
    if isinstance(model.facts.config.get("vision_config"), Mapping) and not model.facts.tensors:
        found.append("what sees or hears beside the language model is not counted")
    if not model.facts.is_whole:
        found.append("files of the model are missing, so its weights were counted")
    heads = model.architecture.kv_heads
    if model.architecture.latent is None and settings.sharding.tensor > heads:
        found.append(
            f"{heads} KV heads on {settings.sharding.tensor} devices: each is kept {settings.sharding.tensor // heads} "
            "times"
        )
    if model.architecture.latent is not None and settings.sharding.tensor > 1:
        found.append("latent attention: each device keeps the whole KV cache")
    return found
