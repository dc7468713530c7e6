"""Near-duplicates: records that share most of their words, by MinHash."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from unicodedata import normalize
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np

_WORDS = 5
"""Of one shingle."""
_HASHES = 128
_ALIKE = 0.7
"""Share of shingles (Jaccard) from which on two records are near-duplicates."""
_COMMON = 0.5
"""Share of records from which on a shingle is a template that all were made with, which makes none of them alike."""


def signatures(texts: Sequence[str]) -> "np.ndarray[Any, Any]":
    """One row of hashes for each text; rows agree in about the share of shingles that their texts share."""
    import numpy as np

    shingles = [_shingles(text) for text in texts]
    seen = Counter(each for found in shingles for each in found)
    common = {each for each, times in seen.items() if len(texts) > 2 / _COMMON and times > _COMMON * len(texts)}
    chance = np.random.default_rng(5)
    factors = chance.integers(1, 1 << 63, (_HASHES, 1), dtype=np.uint64) | np.uint64(1)
    offsets = chance.integers(0, 1 << 63, (_HASHES, 1), dtype=np.uint64)
    rows = np.empty((len(texts), _HASHES), dtype=np.uint64)
    for row, found in zip(rows, shingles, strict=True):
        own = np.array(sorted(found - common or found), dtype=np.uint64)
        row[:] = ((own * factors + offsets) >> np.uint64(32)).min(axis=1)
    return rows


def is_near(row: "np.ndarray[Any, Any]", others: "np.ndarray[Any, Any]") -> bool:
    """Whether one is a near-duplicate of any other."""
    return bool(len(others)) and bool(((others == row).mean(axis=1) >= _ALIKE).any())


def _shingles(text: str) -> set[int]:
    """Hashes of all runs of words; each character that is not ASCII is a word, since many scripts have no spaces."""
    words = re.findall(r"[a-z0-9_]+|\w", normalize("NFKC", text).lower())
    runs = (" ".join(words[at : at + _WORDS]) for at in range(max(1, len(words) - _WORDS + 1)))
    return {crc32(run.encode()) for run in runs}
