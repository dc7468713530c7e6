"""The proxy turns a topology of vLLM instances into one OpenAI server."""
