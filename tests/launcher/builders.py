"""Inputs that many tests share: a machine on paper, plans and model folders."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

from launcher import loader, planner
from launcher.inventory import Checkpoint, Gpu, Inventory, Listener
from launcher.plan import Plan
from launcher.preflight.finding import Case, Rule

GIB = 2**30

MACHINE = Inventory(
    cores=2,
    memory_total=24 * GIB,
    memory_available=24 * GIB,
    python="/opt/duet/bin/python",
    cache=Path("/var/cache/duet"),
    gpus=tuple(Gpu(index, "NVIDIA A100 80GB", f"GPU-{index}", 80 * GIB, 80 * GIB) for index in range(4)),
    engine_version="0.32.0",
    weights={Checkpoint("/var/cache/duet/models/smollm2-135m-instruct"): "8c6dcd2e9b0c7d3f4a51b6e2f0a9d817"},
)
RUN_DIRECTORY = Path("/run/duet")

PAIR = """\
    description: a pair
    device: cpu
    model: {path: /models/tiny}
    roles:
      prefill: {kv_cache_memory: 256MiB}
      decode: {kv_cache_memory: 256MiB}
"""

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 512,
    "dtype": "bfloat16",
}
"""A configuration in which one token's KV cache takes 2 * 4 layers * 2 heads * 64 * 2 bytes = 2 KiB."""


def write(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    """A profile file."""
    file = folder / name
    file.write_text(dedent(text))
    return file


def plan(reference: str | Path, *overrides: str, machine: Inventory = MACHINE, name: str = "mine") -> Plan:
    """The plan of a profile on a machine that exists on paper only."""
    return planner.plan(loader.load(str(reference), overrides), machine, name=name, run_directory=RUN_DIRECTORY)


def case(
    reference: str | Path,
    *overrides: str,
    machine: Inventory = MACHINE,
    environ: Mapping[str, str] | None = None,
) -> Case:
    """What preflight would judge of a profile on such a machine."""
    resolved = loader.resolve(str(reference), overrides)
    settled = planner.plan(resolved.profile, machine, name="mine", run_directory=RUN_DIRECTORY)
    return Case(resolved.profile, settled, machine, environ or {}, resolved.document)


def faults(rules: Iterable[Rule], judged: Case) -> list[str]:
    """The messages of what these rules find."""
    return [fault.message for rule in rules for fault in rule.judge(judged)]


def busy(*ports: int) -> Inventory:
    """The machine with listeners on these ports."""
    return replace(MACHINE, listeners={port: Listener(1000 + port, "somebody") for port in ports})


def options(argv: tuple[str, ...]) -> dict[str, str | None]:
    """An engine's options with their values; ``None`` for a switch."""
    start = next(index for index, part in enumerate(argv) if part.startswith("--"))
    found: dict[str, str | None] = {}
    for part in argv[start:]:
        if part.startswith("--"):
            last = part
            found[last] = None
        else:
            found[last] = part
    return found


def model_folder(folder: Path, config: dict[str, object] | None = None, weights: int = 1000) -> Path:
    """A folder that looks like a Hugging Face model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(LLAMA | (config or {})))
    (folder / "pytorch_model.bin").write_bytes(b"\0" * weights)
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    return folder
