"""Reads a running deployment and names what is wrong: symptom, cause, evidence, fix."""
