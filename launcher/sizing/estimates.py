"""Decision: what an engine needs beside weights and KV cache. Estimated: the engine itself measures it when it starts.

Errors are stated as half of the width in which figures of real engines lay (``docs/sizing.md`` has them).
"""

from launcher.profile import Device
from launcher.sizing.architecture import Architecture
from launcher.sizing.matrices import matrices
from launcher.sizing.settings import GIB, EngineSettings

_MIB = 2**20
_PER_GRAPH_AND_LAYER = 0.18 * _MIB
_SMALLEST_GRAPHS = 64 * _MIB
_LARGEST_GRAPH = 512
_SAMPLER_BYTES = 10
"""Of one logit: in 16 bits, in 32, and a copy that is sampled from."""

GRAPHS_ERROR = 0.6
ACTIVATIONS_ERROR = 0.8
RUNTIME_ERROR = {Device.CUDA: 1.0, Device.CPU: 0.3}
ADAPTERS_ERROR = 0.3


def runtime(settings: EngineSettings) -> int:
    """Libraries: CUDA modules, workspaces, communication; on a CPU all that both processes need beside the model."""
    if settings.device is Device.CPU:
        return 2 * GIB
    return int((0.7 if settings.sharding.tensor * settings.sharding.pipeline == 1 else 1.2) * GIB)


def activations(model: Architecture, settings: EngineSettings, element: int) -> int:
    """The most that a step of ``step`` tokens, or sampling for ``requests``, needs at once."""
    tensor, hidden = settings.sharding.tensor, model.hidden
    widths = [3 * model.intermediate / tensor, (2 * model.heads + 2 * model.kv_heads) * model.head_dim / tensor]
    if model.experts is not None:
        active = model.experts.active
        widths.append(active * (3 * model.experts.width / tensor + hidden) + 3 * model.experts.shared_width / tensor)
    if model.latent is not None:
        widths.append(3 * model.heads * (model.latent.nope + model.latent.rope) / tensor)
    layer = settings.step * (3 * hidden + max(widths)) * element
    sampled = min(settings.requests, settings.step) * model.vocabulary * _SAMPLER_BYTES
    return int(max(layer, sampled))


def adapters(model: Architecture, settings: EngineSettings, element: int) -> int:
    """LoRA: room for two narrow matrices beside each linear layer, for as many adapters as are held at once."""
    if settings.adapters is None or not model.is_countable:
        return 0
    number, rank = settings.adapters
    sides = sum(
        (matrix.columns + matrix.rows / settings.sharding.tensor) * matrix.copies
        for matrix in matrices(model)
        if matrix.is_linear
    )
    return int(number * rank * sides * element)


def graphs(model: Architecture, settings: EngineSettings) -> int:
    """CUDA graphs for batches of many sizes; none on a CPU, nor with ``enforce_eager``."""
    if settings.eager or settings.device is Device.CPU:
        return 0
    query = 1 + (settings.speculation.tokens if settings.speculation else 0)
    most = min(settings.requests * query * 2, _LARGEST_GRAPH, settings.step)
    count = _sizes(most) + _sizes(min(most, settings.requests * query))
    return max(_SMALLEST_GRAPHS, int(count * len(model.layers) * _PER_GRAPH_AND_LAYER))


def _sizes(most: int) -> int:
    """Batches for which there are graphs: 1, 2, 4, then every 8th up to 256, then every 16th."""
    few = sum(size <= most for size in (1, 2, 4))
    return few + len(range(8, min(most + 1, 256), 8)) + len(range(256, most + 1, 16))
