"""The proxy's routes."""
