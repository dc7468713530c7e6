"""Precision of weights and of the KV cache."""

from typing import Literal, Self

from pydantic import model_validator

from launcher.profile.shape import Shape


class Quantization(Shape):
    """Precision of weights and of the KV cache."""

    weights: Literal[
        "checkpoint",
        "fp8_per_tensor",
        "fp8_per_channel",
        "fp8_per_block",
        "mxfp8",
        "mxfp4",
        "nvfp4_per_token",
        "int8_per_channel_weight_only",
    ] = "checkpoint"
    """`checkpoint`: as the checkpoint says (INT4, INT8, FP8... included); else quantized from 16 bits while loading."""
    checkpoint_scheme: Literal["int4", "int8", "fp8", "fp4", "mxfp4", "mxfp8"] | None = None
    """What a quantized checkpoint holds; compared with the model's files, shown by `list`."""
    kv_cache_dtype: Literal[
        "auto",
        "bfloat16",
        "float16",
        "fp8",
        "fp8_e4m3",
        "fp8_e5m2",
        "fp8_inc",
        "fp8_ds_mla",
        "nvfp4_ds_mla",
        "int4_per_token_head",
        "int8_per_token_head",
        "fp8_per_token_head",
        "nvfp4",
        "nvfp4_4over6",
        "turboquant_k8v4",
        "turboquant_4bit_nc",
        "turboquant_k3v4_nc",
        "turboquant_3bit_nc",
        "ultraquant_4bit",
    ] = "auto"
    """`auto`: as the checkpoint says, else the model's dtype. The same on prefill and decode."""

    @model_validator(mode="after")
    def _once(self) -> Self:
        if self.checkpoint_scheme and self.weights != "checkpoint":
            raise ValueError("a checkpoint that is quantized is not quantized again: weights or checkpoint_scheme")
        return self
