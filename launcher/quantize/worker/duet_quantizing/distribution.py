"""What is kept of prompts, to see later whether production still looks like them: numbers, no text."""

from collections import Counter
from collections.abc import Sequence
from math import floor, log2
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Counts = np.ndarray[Any, np.dtype[np.int64]]

_SPLITS = 200


def distribution(prompts: Sequence[Sequence[int]], max_tokens: int, seed: int) -> dict[str, Any]:
    """Of prompts as token ids.

    ``counts``: of each token, of prompts cut at ``max_tokens``; ``lengths``: prompts by ``floor(4 * log2(tokens))``;
    ``p99``: tokens of a long prompt; ``overdispersion``: by how much two halves of these prompts differ more than two
    halves of their tokens would (both at their 95 %), since the tokens of one prompt belong together.
    """
    counts = Counter(token for prompt in prompts for token in prompt[:max_tokens])
    lengths = Counter(floor(4 * log2(max(1, len(prompt)))) for prompt in prompts)
    return {
        "counts": {str(token): counts[token] for token in sorted(counts)},
        "lengths": {str(bucket): lengths[bucket] for bucket in sorted(lengths)},
        "records": len(prompts),
        "max_tokens": max_tokens,
        "p99": quantile([len(prompt) for prompt in prompts], 0.99),
        "overdispersion": _overdispersion([prompt[:max_tokens] for prompt in prompts], seed),
    }


def quantile(values: Sequence[int], share: float) -> int:
    """The smallest value that at least this share of all does not exceed; 0 of none."""
    return sorted(values)[max(0, -int(-share * len(values) // 1) - 1)] if values else 0


def lengths(records: Sequence[Sequence[int]]) -> dict[str, int]:
    """Of records, in tokens."""
    sizes = [len(ids) for ids in records]
    return {"p50": quantile(sizes, 0.5), "p90": quantile(sizes, 0.9), "p99": quantile(sizes, 0.99), "max": max(sizes)}


def divergence(one: "Counts", other: "Counts") -> float:
    """Jensen and Shannon's, in bits, of two rows of counts."""
    import numpy as np

    p, q = one / one.sum(), other / other.sum()
    middle = (p + q) / 2
    shares = (np.divide(side, middle, out=np.ones_like(side), where=side > 0) for side in (p, q))
    return float(sum((side * np.log2(share)).sum() for side, share in zip((p, q), shares, strict=True)) / 2)


def _overdispersion(prompts: Sequence[Sequence[int]], seed: int) -> float:
    import numpy as np

    if len(prompts) < 4:
        return 1.0
    _, tokens = np.unique(np.concatenate([np.array(prompt, dtype=np.int64) for prompt in prompts]), return_inverse=True)
    owner = np.repeat(np.arange(len(prompts)), [len(prompt) for prompt in prompts])
    every = np.bincount(tokens)
    chance = np.random.default_rng(seed)
    by_prompt, by_token = [], []
    for _ in range(_SPLITS):
        half = np.zeros(len(prompts), dtype=bool)
        half[chance.permutation(len(prompts))[: len(prompts) // 2]] = True
        some = np.bincount(tokens[half[owner]], minlength=len(every))
        if not 0 < some.sum() < len(tokens):
            continue
        by_prompt.append(divergence(some, every - some))
        some = chance.multivariate_hypergeometric(every, int(some.sum()), method="marginals")
        by_token.append(divergence(some, every - some))
    if not by_token or not (expected := float(np.quantile(by_token, 0.95))):
        return 1.0
    return round(float(np.quantile(by_prompt, 0.95)) / expected, 4)
