"""Holds the program that runs in the worker's interpreter; nothing here is imported by Duet, nor imports it."""
