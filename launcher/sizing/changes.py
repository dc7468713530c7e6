"""Decision: what other precisions would change, and what fits on devices that somebody names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from launcher.inventory import Checkpoint
from launcher.profile import Device
from launcher.sizing.deployment import SHOWN
from launcher.sizing.draft import draft_of
from launcher.sizing.families import UnknownArchitectureError
from launcher.sizing.instance import block_size_of, size
from launcher.sizing.kv_cache import element_size, layer_caches
from launcher.sizing.models import ModelFacts
from launcher.sizing.scheme import UnknownSchemeError
from launcher.sizing.settings import EngineSettings
from launcher.sizing.size import InstanceSize, Verdict
from launcher.sizing.understood import understand


def _compressed(bits: int, kind: str, group: int | None) -> Mapping[str, Any]:
    weights = {"num_bits": bits, "type": kind, "group_size": group, "strategy": "group" if group else "channel"}
    activations = None if bits == 4 else {"num_bits": bits, "type": kind}
    groups = {"group_0": {"weights": {**weights, "symmetric": True}, "input_activations": activations}}
    return {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["lm_head"]}


PRECISIONS: Mapping[str, Mapping[str, Any]] = {
    "16 bit": {},
    "INT8": _compressed(8, "int", None),
    "INT4": _compressed(4, "int", 128),
}
"""By the names that people have for them -> what a checkpoint would say. FP8 takes what INT8 takes."""


_ALIKE = 0.02
"""Of the bytes beside the KV cache: what differs less is the same precision by another name."""


@dataclass(frozen=True, slots=True)
class Change:
    """An engine with another precision of weights or KV cache."""

    weights: str
    kv_cache: str
    size: InstanceSize


@dataclass(frozen=True, slots=True)
class Option:
    """An engine on some of the devices that somebody has."""

    tensor_parallel: int
    instances: int
    """How many of them the devices hold."""
    weights: str
    size: InstanceSize


@dataclass(frozen=True, slots=True)
class Transfer:
    """The KV cache of one prompt on its way from prefill to decode."""

    tokens: int
    bytes: int
    """Over all devices of decode."""
    seconds: float | None
    """``None``: no bandwidth was told."""


def changes(base: InstanceSize, settings: EngineSettings, models: Mapping[Checkpoint, ModelFacts]) -> Iterator[Change]:
    """The same engine with each precision of the weights, and each with a KV cache in 8 bits."""
    for name, facts in _variants(settings, models):
        for kv in ("auto", "fp8"):
            changed = replace(settings, kv_dtype=kv, quantization=None)
            found = size(
                base.name,
                base.role,
                changed,
                {**models, settings.model: facts},
                devices=base.devices,
                card=base.card,
                margin=base.margin,
            )
            yield Change(name, "as computed" if kv == "auto" else kv, found)


def options(
    name: str,
    settings: EngineSettings,
    models: Mapping[Checkpoint, ModelFacts],
    devices: int,
    card: int,
    margin: float,
) -> Iterator[Option]:
    """The engine on ``devices`` of ``card`` bytes each: each tensor-parallel width, and each precision."""
    facts = models.get(settings.model)
    if facts is None:
        return
    try:
        heads = understand(settings, settings.model, facts).architecture.heads
    except (UnknownArchitectureError, UnknownSchemeError):
        return
    shown = int(card * SHOWN) if settings.device is Device.CUDA else card
    for width in (number for number in range(1, devices + 1) if heads % number == 0):
        sharding = replace(settings.sharding, tensor=width, pipeline=1)
        changed = replace(settings, sharding=sharding, kv_memory=None, blocks=None)
        as_it_is = size(name, "", changed, models, card=shown, margin=margin)
        yield Option(width, devices // width, f"as it is: {as_it_is.precision}", as_it_is)
        for precision, variant in _variants(settings, models):
            found = size(name, "", changed, {**models, settings.model: variant}, card=shown, margin=margin)
            if abs(found.fixed - as_it_is.fixed) > as_it_is.fixed * _ALIKE:
                yield Option(width, devices // width, precision, found)


def transfer(
    settings: EngineSettings, models: Mapping[Checkpoint, ModelFacts], tokens: int, bandwidth: float | None
) -> Transfer | None:
    """Of a prompt of so many tokens, in bytes per second; ``settings`` are those of decode, whose devices each read."""
    facts = models.get(settings.model)
    if facts is None:
        return None
    try:
        model = understand(settings, settings.model, facts)
    except (UnknownArchitectureError, UnknownSchemeError):
        return None
    element = element_size(settings.kv_dtype, model.dtype)
    if element is None:
        return None
    width = settings.sharding.tensor
    draft = draft_of(
        settings, model.architecture, None, None, (), None, float_size=model.float_size, element=element
    )  # of layers behind the last, which are handed over too
    block = block_size_of(settings, model.architecture)
    whole = -(-tokens // block) * block
    layers = [
        *layer_caches(model.architecture, element=element, tensor_parallel=width),
        *(draft.layers if draft else ()),
    ]
    sent = sum(
        layer.bytes_per_token * (min(whole, (-(-layer.window // block) + 1) * block) if layer.window else whole)
        for layer in layers
    )
    return Transfer(tokens, sent * width, sent * width / bandwidth if bandwidth else None)


def together(found: Mapping[str, tuple[Option, ...]], devices: int) -> str:
    """Whether one engine of each role fits on so many devices at once."""
    fitting = {
        role: min((each.tensor_parallel for each in options if each.size.verdict in _FITTING), default=None)
        for role, options in found.items()
    }
    if len(fitting) < 2:
        return ""
    missing = [role for role, width in fitting.items() if width is None]
    if missing:
        return f"not {' and '.join(fitting)} at once: {' and '.join(missing)} fit in no precision"
    needed = ", ".join(f"{role} {width}" for role, width in fitting.items())
    total = sum(width or 0 for width in fitting.values())
    fits = "at once" if total <= devices else "not at once"
    return f"{' and '.join(fitting)} fit {fits}: devices needed at least, in the fewest bits that fit: {needed}"


_FITTING = frozenset({Verdict.FITS, Verdict.TIGHT})


def _variants(settings: EngineSettings, models: Mapping[Checkpoint, ModelFacts]) -> Iterator[tuple[str, ModelFacts]]:
    facts = models.get(settings.model)
    if facts is not None:
        for name, quantization in PRECISIONS.items():
            yield name, replace(facts, quantization=quantization, tensors=())
