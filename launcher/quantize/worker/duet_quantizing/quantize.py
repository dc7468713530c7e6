"""The step that makes the quantized checkpoint."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .experts import never_chosen
from .loading import load, tokenizer
from .modifiers import modifiers
from .produced import look
from .telling import RefusedError, Tell
from .watching import Fallbacks, Watch


def quantize(job: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """``job``: {"model", "records": file of ``prepare`` or null, "out", "seed", "recipe"}.

    Result: {"quantized": [names], "fallbacks", "fallbacks_of", "strange": [tensors with NaN or zero scales], "bytes",
    "idle_experts": {layer: [numbers]}, "versions"}.
    """
    import torch
    from llmcompressor import oneshot
    from loguru import logger

    sys.stderr = Watch(sys.stderr, tell)
    out = Path(job["out"])
    shutil.rmtree(out, ignore_errors=True)
    tell.progress("loading the original", 0, 1)
    model = load(job["model"])
    records = calibration_records(job)
    _without_accelerator()
    fallbacks = Fallbacks()
    sink = logger.add(fallbacks, level="WARNING", format="{message}")
    idle = never_chosen(model, records)
    torch.manual_seed(job["seed"])
    asked = {"dataset": _dataset(records), "num_calibration_samples": len(records)} if records else {}
    longest = max(map(len, records), default=1)
    try:
        oneshot(
            model=model,
            tokenizer=tokenizer(job["model"]),
            recipe=modifiers(job["recipe"]),
            max_seq_length=longest,
            shuffle_calibration_samples=False,  # all are taken; their order is ours
            **asked,
        )
    except ValueError as exc:
        if "unable to find any modules" in str(exc):
            raise RefusedError(f"no layer of {job['model']} is meant by the recipe: {exc}") from exc
        raise
    logger.remove(sink)
    tell.progress("writing the checkpoint", 0, 1)
    model.save_pretrained(out, save_compressed=True)
    tokenizer(job["model"]).save_pretrained(out)
    _copy_the_rest(Path(job["model"]), out)
    return {
        **look(out),
        "fallbacks": fallbacks.layers,
        "fallbacks_of": fallbacks.of,
        "idle_experts": idle,
        "versions": _versions(),
    }


def calibration_records(job: Mapping[str, Any]) -> list[list[int]]:
    import json

    if job["records"] is None:
        return []
    found: list[list[int]] = json.loads(Path(job["records"]).read_text())["calibration"]
    return found


def _dataset(records: Sequence[Sequence[int]]) -> Any:
    from datasets import Dataset

    rows = [[*record] for record in records]
    return Dataset.from_dict({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})


def _without_accelerator() -> None:
    """AWQ pins memory for a GPU even where there is none (llm-compressor 0.14), and ends."""
    import torch
    from llmcompressor.pipelines.cache import IntermediatesCache

    if not torch.accelerator.is_available():
        IntermediatesCache.pin_memory = lambda self, *args, **kwargs: None


def _copy_the_rest(model: Path, out: Path) -> None:
    """What neither the model nor the tokenizer writes again, e.g. a chat template of its own or a processor."""
    for file in model.iterdir():
        is_text = file.suffix in {".json", ".jinja", ".txt", ".py"} and "index" not in file.name
        if file.is_file() and is_text and not (out / file.name).exists():
            shutil.copy2(file, out / file.name)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("llmcompressor", "compressed-tensors", "torch", "transformers")}
