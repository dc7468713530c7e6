"""Is the quantized model as good as the original, both as vLLM serves them?"""
