"""Completes command lines in a shell, without importing what they would run: that takes too long for a key press."""
