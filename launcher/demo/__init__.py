"""One question through the pair, and the proof that the KV cache moved."""
