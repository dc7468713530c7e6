"""Text as ``/metrics`` has it."""

from collections.abc import Mapping

LABELS = 'engine="0",model_name="fake"'


def metrics(*parts: Mapping[str, float]) -> str:
    """Samples by their names, with vLLM's labels besides those that are written there."""
    samples = {name: value for part in parts for name, value in part.items()}
    return "".join(f"{_labelled(name)} {float(value)}\n" for name, value in samples.items())


def histogram(name: str, counts: Mapping[float, float]) -> dict[str, float]:
    """Cumulative counts by upper bound; the last of them is all."""
    every = max(counts.values(), default=0)
    buckets = {f'{name}_bucket{{le="{float(bound)}"}}': count for bound, count in counts.items()}
    return {**buckets, f'{name}_bucket{{le="+Inf"}}': every, f"{name}_sum": every, f"{name}_count": every}


def _labelled(name: str) -> str:
    bare, _, labels = name.partition("{")
    return f"{bare}{{{','.join(filter(None, (labels.removesuffix('}'), LABELS)))}}}"
