"""State: the beginnings of prompts that one instance has computed lately, as far as this process has seen."""

from collections import OrderedDict
from collections.abc import Sequence


class Prefixes:
    """A bounded memory of block hashes; those used least lately are forgotten first, as engines do."""

    def __init__(self) -> None:
        # The oldest first. Of a prompt, a block always stands after those that follow it, so what is remembered of it
        # is a beginning without gaps, however much of it is forgotten.
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._blocks)

    def match(self, blocks: Sequence[int]) -> int:
        """How many of the first blocks are remembered."""
        known, unknown = 0, len(blocks) + 1
        while unknown - known > 1:  # no gaps: halve the interval
            middle = (known + unknown) // 2
            if blocks[middle - 1] in self._blocks:
                known = middle
            else:
                unknown = middle
        return known

    def add(self, blocks: Sequence[int], limit: int) -> None:
        """Remember a prompt, and at most ``limit`` blocks in all."""
        remembered = self._blocks
        for block in reversed(blocks[:limit]):
            remembered[block] = None
            remembered.move_to_end(block)
        while len(remembered) > limit:
            remembered.popitem(last=False)

    def forget(self) -> None:
        """The instance has lost its KV cache."""
        self._blocks.clear()
