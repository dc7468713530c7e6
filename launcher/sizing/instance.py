"""Decision: the size of one engine, from its settings and from what is known of its models."""

from collections.abc import Mapping
from dataclasses import replace

from launcher.inventory import Checkpoint
from launcher.profile import Device
from launcher.sizing import estimates
from launcher.sizing.architecture import Architecture
from launcher.sizing.draft import Draft
from launcher.sizing.families import UnknownArchitectureError
from launcher.sizing.kv_cache import InFlight, Layout, element_size, layer_caches, layout
from launcher.sizing.matrices import matrices, parameters
from launcher.sizing.measured import Measured
from launcher.sizing.models import ModelFacts
from launcher.sizing.parts import calibrated, draft_beside, others, weights
from launcher.sizing.scheme import UnknownSchemeError
from launcher.sizing.settings import EngineSettings
from launcher.sizing.size import InstanceSize, KVSize, Part, Verdict
from launcher.sizing.understood import Understood, understand

_SIXTEEN_BITS = "16 bit"


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
        ranks=settings.sharding.tensor * settings.sharding.pipeline * settings.sharding.data,
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
    heads, width = model.architecture.heads, settings.sharding.tensor
    if heads % width:
        unknown.append(f"{heads} attention heads cannot be shared out to {width} devices: the engine refuses it")
    element = element_size(settings.kv_dtype, model.dtype)
    if element is None:
        unknown.append(f"the KV cache's format {settings.kv_dtype} is not counted")
    draft, problem = draft_beside(settings, model, models, element or 2)
    if problem:
        unknown.append(problem)
    loaded = weights(settings, model)
    if loaded is None:
        unknown.append(f"{settings.model.name}: its weights are neither there nor described")
    parts = [part for part in (loaded, *others(settings, model, draft)) if part is not None]
    parts = calibrated(parts, before) if before is not None else parts
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
    if (copies := settings.sharding.data) > 1:
        found.append(f"data parallel: {copies} KV caches as large as this one")
    heads = model.architecture.kv_heads
    if model.architecture.latent is None and settings.sharding.tensor > heads:
        found.append(
            f"{heads} KV heads on {settings.sharding.tensor} devices: each is kept {settings.sharding.tensor // heads} "
            "times"
        )
    if model.architecture.latent is not None and settings.sharding.tensor > 1:
        found.append("latent attention: each device keeps the whole KV cache")
    return found
