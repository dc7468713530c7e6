"""Compares two arms of a split: what their requests showed, kept beside the configuration; and ends by itself."""
