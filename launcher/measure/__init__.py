"""Drives load, measures what clients would see, and judges it by statistics: for `bench`, `compare` and `tune`."""
