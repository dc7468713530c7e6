"""Decision: what of each linear layer one device has, for each role, and which other splits there are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from launcher.model_folder import ModelFolder
from launcher.preflight.checkpoints.linear_layers import FUSED, Linear, linear_layers
from launcher.preflight.checkpoints.loaded import drafts, target
from launcher.preflight.finding import Case
from launcher.profile import Device

_DEGREES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Use:
    """A model as one role loads it."""

    what: str
    key: str
    """Of the profile, which says how it is split."""
    model_key: str
    name: str
    folder: ModelFolder
    layers: Sequence[Linear]
    tensor_parallel: int
    whole_experts: bool
    device: Device


@dataclass(frozen=True, slots=True)
class Shard:
    """What one device has of a layer."""

    layer: Linear
    inputs: int
    outputs: int
    splits_inputs: bool


def uses(case: Case) -> Iterator[Use]:
    """The model and the draft of each role."""
    if (model := target(case)) is not None:
        layers = case.reader.once(_without_copies, model.folder)
        for role, settings in case.profile.roles.items():
            yield Use(
                f"{model.name} on {role}",
                f"roles.{role}.tensor_parallel",
                model.key,
                model.name,
                model.folder,
                layers,
                settings.tensor_parallel,
                settings.expert_parallel,
                case.profile.device,
            )
    for each in drafts(case):
        yield Use(
            f"the draft {each.draft.name} on {each.role}",
            f"roles.{each.role}.tensor_parallel"
            if each.draft_settings.tensor_parallel is None
            else f"{each.key}.draft.tensor_parallel",
            each.draft.key,
            each.draft.name,
            each.draft.folder,
            case.reader.once(_without_copies, each.draft.folder),
            each.draft_settings.tensor_parallel or each.settings.tensor_parallel,
            False,
            case.profile.device,
        )


def _without_copies(folder: ModelFolder) -> list[Linear]:
    """All layers, but of each mixture one expert: they are alike."""
    return [each for each in linear_layers(folder) if not each.is_expert or ".experts.0." in each.name]


def shards(use: Use) -> Iterator[Shard]:
    """Of all layers; of uneven ones what is left when the rest is cut off."""
    for layer in use.layers:
        yield shard(layer, use)


def shard(layer: Linear, use: Use) -> Shard:
    """Of one layer."""
    parts = use.tensor_parallel
    if layer.is_whole or parts == 1 or (layer.is_expert and use.whole_experts):
        return Shard(layer, layer.inputs, layer.outputs, False)
    if layer.is_row_parallel:
        return Shard(layer, layer.inputs // parts, layer.outputs, True)
    if layer.last in {"k_proj", "v_proj"}:  # one head is the least that a device has
        heads = use.folder.text.get("num_key_value_heads")
        parts = min(parts, heads) if isinstance(heads, int) and heads > 0 else parts
    return Shard(layer, layer.inputs, layer.outputs // parts, False)


def fused(found: Iterable[Shard]) -> Iterator[Shard]:
    """The same with those added up of which the engine makes one layer."""
    names = {part: whole for whole, parts in FUSED.items() for part in parts}
    together: dict[str, Shard] = {}
    for each in found:
        whole = None if each.layer.is_expert else names.get(each.layer.last)
        if whole is None:
            yield each
            continue
        name = f"{each.layer.name.removesuffix(each.layer.last)}{whole}"
        before = together.get(name)
        outputs = each.outputs + (before.outputs if before else 0)
        together[name] = replace(each, layer=replace(each.layer, name=name), outputs=outputs)
    yield from together.values()


def other_degrees(use: Use, is_wrong: Callable[[Shard, Use], bool]) -> str:
    """``1, 2 or 4``: the degrees of tensor parallelism with which no layer is wrong; empty for none."""
    heads = use.folder.text.get("num_attention_heads")
    found = []
    for degree in _DEGREES:
        if isinstance(heads, int) and heads % degree:
            continue
        other = replace(use, tensor_parallel=degree)
        if not any(is_wrong(each, other) or is_uneven(each.layer, other) for each in fused(shards(other))):
            found.append(str(degree))
    return " or ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def is_uneven(layer: Linear, use: Use) -> bool:
    """Whether the layer cannot be split into so many equal parts."""
    parts = use.tensor_parallel
    if (
        layer.is_whole
        or layer.is_tower
        or layer.last in {"k_proj", "v_proj"}
        or (layer.is_expert and use.whole_experts)
    ):
        return False
    return (layer.inputs if layer.is_row_parallel else layer.outputs) % parts != 0


def names_of(found: Sequence[Shard]) -> str:
    """``3 layers (a, b, c)``: the first few and how many."""
    names = [each.layer.name for each in found]
    shown = ", ".join(names[:_SHOWN])
    return f"{len(names)} layer{'s' if len(names) > 1 else ''} ({shown}{', ...' if names[_SHOWN:] else ''})"
