"""Decision: how vLLM 0.32 cuts a KV cache into blocks, and what fits into one. Exact.

All layers of one kind form a group with its own blocks per request; the blocks of all groups come from one pool, so
that a block is as large as the largest group needs it. The pool always holds one block back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.sizing.architecture import Architecture

_BYTES: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "half": 2, "float": 4}


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What one layer keeps on one device."""

    bytes_per_token: int
    window: int | None
    """Tokens; ``None``: all."""


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share one block table."""

    layers: int
    block_size: int
    """Tokens."""
    window: int | None


@dataclass(frozen=True, slots=True)
class InFlight:
    """What a window needs room for beyond itself."""

    tokens: int
    """Scheduled at most before the window moves on: steps under way times tokens of a step."""
    retained: int = 0
    """Tokens that several draft layers read once more."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A KV cache on one device of the stage that needs most."""

    groups: tuple[Group, ...]
    bytes_per_block: int
    """In the pool, over all layers."""
    bytes_per_token: int
    """Of one more token in all layers that keep it for ever: what long requests cost."""
    in_flight: InFlight

    def blocks(self, memory: int) -> int:
        """How many it has in so many bytes."""
        return max(0, memory) // self.bytes_per_block

    def blocks_per_request(self, tokens: int) -> int:
        """Taken at most by a request of so many tokens, prompt and answer."""
        return sum(_blocks(group, tokens, self.in_flight) for group in self.groups)

    def needed(self, tokens: int) -> int:
        """Bytes with which the engine takes on one request of so many tokens; with less it does not start."""
        return (self.blocks_per_request(tokens) + 1) * self.bytes_per_block

    def concurrency(self, memory: int, tokens: int) -> float:
        """Requests of so many tokens that fit at once, as the engine logs it."""
        return self.blocks(memory) / self.blocks_per_request(tokens)

    def tokens(self, memory: int, longest: int) -> int:
        """The size that the engine logs, which depends on its longest request where layers have windows."""
        return int(self.concurrency(memory, longest) * longest)

    def longest(self, memory: int, most: int) -> int:
        """The longest request that the engine takes on, up to ``most`` tokens; 0: none."""
        return largest(most, lambda tokens: self.needed(tokens) <= memory)


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to ``most`` that fits, where all smaller ones fit too; 0 for none."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def element_size(kv_dtype: str, dtype: str) -> int | None:
    """Bytes of one number in the cache; ``None`` for a format that is not counted here."""
    chosen = dtype if kv_dtype == "auto" else kv_dtype
    if chosen.startswith("fp8") and "head" not in chosen and "mla" not in chosen:
        return 1
    return _BYTES.get(chosen)


def layer_caches(model: Architecture, *, element: int, tensor_parallel: int) -> list[LayerCache]:
    """What its layers keep on each of so many devices; heads that do not divide are on several of them."""
    if model.latent is not None:
        numbers = model.kv_dimensions  # each device has all of it
    else:
        numbers = 2 * max(1, model.kv_heads // tensor_parallel) * model.head_dim
    return [LayerCache(numbers * element, layer.window) for layer in model.layers]


def layout(
    layers: Sequence[LayerCache], block_size: int, in_flight: InFlight, *, windows: bool = True, stages: int = 1
) -> Layout:
    """The cache of these layers; without ``windows`` the engine keeps all tokens in all layers."""
    if not windows and len({layer.window is None for layer in layers}) > 1:
        layers = [replace(layer, window=None) for layer in layers]
    if len({layer.window for layer in layers}) == 1:
        buckets = [[*range(len(layers))]]
        sizes, pages = [block_size] * len(layers), [layer.bytes_per_token * block_size for layer in layers]
    else:
        sizes, pages = _one_page(layers, block_size)
        buckets = _split(layers, sizes)
    stage = _stages(len(layers), stages)
    return Layout(
        groups=tuple(Group(len(bucket), sizes[bucket[0]], layers[bucket[0]].window) for bucket in buckets),
        bytes_per_block=max(
            sum(pages[number] for number in bucket if number in part) for part in stage for bucket in buckets
        ),
        bytes_per_token=max(
            sum(layers[number].bytes_per_token for number in part if layers[number].window is None) for part in stage
        ),
        in_flight=in_flight,
    )


def stage_sizes(layers: int, stages: int) -> list[int]:
    """Layers of each pipeline stage, as vLLM divides them: what is left over goes to the last but one and before."""
    sizes = [layers // stages] * stages
    for number in range(2, layers % stages + 2):
        sizes[-number] += 1
    return sizes


def _stages(layers: int, stages: int) -> list[range]:
    found, start = [], 0
    for size in stage_sizes(layers, stages):
        found.append(range(start, start := start + size))
    return found


def _blocks(group: Group, tokens: int, in_flight: InFlight) -> int:
    if group.window is None:
        return -(-tokens // group.block_size)
    kept = min(group.window - 1 + in_flight.retained + in_flight.tokens, tokens)
    return -(-kept // group.block_size) + 1  # it may begin within a block


def _one_page(layers: Sequence[LayerCache], block_size: int) -> tuple[list[int], list[int]]:
    """Groups share a pool, so a block of each layer gets as large as the largest: by more tokens, else by padding."""
    largest_page = max(layer.bytes_per_token for layer in layers) * block_size
    sizes = []
    for layer in layers:
        times, rest = divmod(largest_page, layer.bytes_per_token * block_size)
        sizes.append(block_size if rest else block_size * times)
    return sizes, [largest_page] * len(layers)


def _split(layers: Sequence[LayerCache], sizes: Sequence[int]) -> list[list[int]]:
    """Layers of one kind, in groups of about equal size: that of the smallest kind, if that wastes little."""
    kinds: dict[tuple[int | None, int, int], list[int]] = {}
    for number, layer in enumerate(layers):
        kinds.setdefault((layer.window, sizes[number], layer.bytes_per_token), []).append(number)
    counts = [len(kind) for kind in kinds.values()]
    size = max(counts) if max(counts) < min(counts) * 1.5 else min(counts)
    groups = []
    for kind in kinds.values():
        parts = -(-len(kind) // size)
        groups += [kind[first::parts] for first in range(parts)]
    return groups
