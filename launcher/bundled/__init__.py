"""Small real models that come from a PyPI package instead of a hub, converted once."""
