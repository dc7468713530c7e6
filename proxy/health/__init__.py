"""Which instances can be given requests."""
