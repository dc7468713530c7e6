"""Looks at the files that were written: what is quantized, and are its numbers sound?"""

from pathlib import Path
from typing import Any

_SCALES = ("weight_scale", "weight_global_scale", "input_scale")


def look(folder: Path) -> dict[str, Any]:
    """{"quantized": [modules], "strange": [tensors], "bytes": of all weight files}."""
    import torch
    from safetensors import safe_open

    quantized, strange = set(), []
    files = sorted(folder.glob("*.safetensors"))
    for file in files:
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118  # no mapping
                module, _, last = name.rpartition(".")
                if last == "weight_packed":
                    quantized.add(module)
                    continue
                tensor = opened.get_tensor(name)
                if last == "weight" and tensor.dtype in {torch.int8, torch.float8_e4m3fn}:
                    quantized.add(module)
                elif tensor.is_floating_point() and not torch.isfinite(tensor).all():
                    strange.append(f"{name} is NaN or infinite")
                elif last in _SCALES and bool((tensor == 0).any()):
                    strange.append(f"{name} is zero")
    return {"quantized": sorted(quantized), "strange": strange, "bytes": sum(file.stat().st_size for file in files)}
