"""Proves that KV caches move between a prefill and a decode instance: by a canary, whose answer is known."""
