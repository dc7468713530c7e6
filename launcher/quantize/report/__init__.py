"""The report of a quantization: one page for people, and the same figures for programs."""

from launcher.plain import to_json
from launcher.quantize.report.page import render

__all__ = ["render", "to_json"]
