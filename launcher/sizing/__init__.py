"""How much memory a deployment needs, on which device, and what fits: before it starts, and beside what was real.

Exact where the engine counts (tensors, KV blocks), estimated with a stated error where it measures (activations,
graphs, libraries). Counted as vLLM 0.32 does it.
"""
