"""Post-training quantization in four steps, with a gate: records, recipe, calibration, proof against the original.

The work itself is done by llm-compressor in an interpreter of its own (:mod:`.worker`); here it is planned, started,
judged by what vLLM serves, and published only when it passes.
"""
