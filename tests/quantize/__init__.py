"""Real quantizations of a tiny model: llm-compressor makes it, vLLM serves it, the gate judges it."""
