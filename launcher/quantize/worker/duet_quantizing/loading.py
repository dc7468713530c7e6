"""Loads the original, and refuses one that cannot be quantized."""

from typing import Any

from .telling import RefusedError


def load(folder: str, dtype: str = "auto") -> Any:
    """The model on the CPU; raises :class:`RefusedError` for weights that are no numbers."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder)
    if getattr(config, "quantization_config", None) is not None:
        raise RefusedError(f"{folder} is already quantized: give the 16-bit original")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    for name, weight in model.named_parameters():
        if weight.is_floating_point() and not torch.isfinite(weight).all():
            wrong = int((~torch.isfinite(weight)).sum())
            raise RefusedError(
                f"{name} of {folder} has {wrong} numbers that are NaN or infinite: fetch the checkpoint again"
            )
    return model


def tokenizer(folder: str) -> Any:
    """The model's own."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)
