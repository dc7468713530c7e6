"""Decision: what a draft adds to the memory of its target's engine."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from launcher.model_folder import Tensor
from launcher.sizing.architecture import Architecture, Layer
from launcher.sizing.kv_cache import LayerCache, layer_caches
from launcher.sizing.matrices import Matrix, Split, matrices, mtp_matrices
from launcher.sizing.scheme import Scheme
from launcher.sizing.settings import EngineSettings
from launcher.sizing.weights import Sharding, counted, measured

_HEADS = frozenset({"eagle", "eagle3"})
MTP = frozenset({"mtp", "deepseek_mtp", "glm4_moe_mtp", "qwen3_next_mtp", "ernie_mtp"})
MODELS = frozenset({"draft_model", *_HEADS})
"""Methods whose draft is a model of its own."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Its bytes on each device."""

    weights: int
    layers: tuple[LayerCache, ...]
    is_measured: bool
    """From its tensors, not counted."""


def draft_of(
    settings: EngineSettings,
    target: Architecture,
    target_scheme: Scheme | None,
    draft: Architecture | None,
    tensors: Iterable[Tensor],
    scheme: Scheme | None,
    *,
    float_size: int,
    element: int,
) -> Draft | None:
    """Of the method in use; ``None`` where it needs no memory worth counting (n-grams)."""
    method = settings.speculation.method if settings.speculation else ""
    parallel = (settings.speculation and settings.speculation.tensor_parallel) or settings.sharding.tensor
    sharding = Sharding(tensor=parallel)
    if method in MTP:
        own = replace(target, layers=(Layer(None, target.experts is not None),) * max(1, target.mtp_layers))
        weights = counted(mtp_matrices(target), target_scheme, float_size, target, replace(sharding, tensor=parallel))
        return Draft(weights, tuple(layer_caches(own, element=element, tensor_parallel=parallel)), False)
    if draft is None or method not in MODELS:
        return None
    found = tuple(tensors)
    if found:
        shared = () if method not in _HEADS else ("embed_tokens.weight",)
        kept = [tensor for tensor in found if not tensor.name.endswith(shared)] if shared else found
        weights = measured(kept, float_size, draft, sharding)
    else:
        parts = _head_matrices(draft, method) if method in _HEADS else matrices(draft)
        weights = counted(parts, scheme, float_size, draft, sharding)
    return Draft(weights, tuple(layer_caches(draft, element=element, tensor_parallel=parallel)), bool(found))


def _head_matrices(draft: Architecture, method: str) -> Iterator[Matrix]:
    """Of EAGLE: decoder layers behind what joins the target's states; the embedding is the target's."""
    hidden = draft.hidden
    states = 3 if method == "eagle3" else 2
    yield Matrix("fc", hidden, states * hidden, Split.NOT, 0, is_linear=False)
    for matrix in matrices(draft):
        if matrix.layer is None:
            if method == "eagle3" and matrix.name == "lm_head":  # of the tokens that it may draft
                yield replace(matrix, layer=0, rows=draft.draft_vocabulary or draft.vocabulary)
        elif method == "eagle3" and matrix.name.endswith(("q_proj", "k_proj", "v_proj")):
            yield replace(matrix, columns=2 * hidden)  # its states beside the embedding
        else:
            yield matrix
