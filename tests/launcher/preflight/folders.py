"""Folders of models on paper: a configuration, and weight files with headers and no data."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from math import prod
from pathlib import Path

from launcher.preflight import RULES
from launcher.preflight.finding import Case, Fault
from tests.launcher.builders import MACHINE, case

Shapes = dict[str, tuple[str, tuple[int, ...]]]
"""Name -> type as safetensors calls it, and shape."""
Store = Callable[[str, int, int], Shapes]
"""How a linear layer of a name with so many outputs and inputs is stored."""
_BYTES = {"F32": 4, "I32": 4, "BF16": 2, "F16": 2, "I64": 8, "F8_E4M3": 1, "I8": 1, "U8": 1}

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "num_hidden_layers": 3,
    "vocab_size": 256,
    "max_position_embeddings": 32768,
    "dtype": "bfloat16",
}
TEMPLATE = {"chat_template": "{{ messages }}"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}


def ct(bits: int = 4, group: int | None = 128, **more: object) -> dict[str, object]:
    """Packed integers, as llm-compressor writes them."""
    weights = {"num_bits": bits, "type": "int", "symmetric": True, "strategy": "group" if group else "channel"}
    group_of = {"targets": ["Linear"], "weights": {**weights, "group_size": group}, "input_activations": None}
    told = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": group_of}}
    return {**told, "ignore": ["lm_head"], **more}


W8A8 = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"},
            "input_activations": {"num_bits": 8, "type": "int", "dynamic": True, "strategy": "token"},
        }
    },
    "ignore": ["lm_head"],
}


def plain(name: str, outputs: int, inputs: int) -> Shapes:
    return {f"{name}.weight": ("BF16", (outputs, inputs))}


def in_gptq(name: str, outputs: int, inputs: int) -> Shapes:
    return {f"{name}.qweight": ("I32", (inputs // 8, outputs)), f"{name}.scales": ("F16", (inputs // 128, outputs))}


def in_awq(name: str, outputs: int, inputs: int) -> Shapes:
    return {f"{name}.qweight": ("I32", (inputs, outputs // 8)), f"{name}.scales": ("F16", (inputs // 128, outputs))}


def in_packed(name: str, outputs: int, inputs: int) -> Shapes:
    packed = ("I32", (outputs, -(-inputs // 8)))
    return {f"{name}.weight_packed": packed, f"{name}.weight_scale": ("BF16", (outputs, max(1, inputs // 128)))}


def in_int8(name: str, outputs: int, inputs: int) -> Shapes:
    return {f"{name}.weight": ("I8", (outputs, inputs)), f"{name}.weight_scale": ("BF16", (outputs, 1))}


def in_fp8(name: str, outputs: int, inputs: int) -> Shapes:
    scales = ("F32", (-(-outputs // 128), -(-inputs // 128)))
    return {f"{name}.weight": ("F8_E4M3", (outputs, inputs)), f"{name}.weight_scale_inv": scales}


def llama(config: Mapping[str, object], store: Store = plain, but: Mapping[str, Store] | None = None) -> Shapes:
    """All tensors of a dense model of this configuration; ``but``: a part of a name -> how that layer is stored."""
    size = {key: value for key, value in config.items() if isinstance(value, int)}
    hidden, inner, head = size["hidden_size"], size["intermediate_size"], size["head_dim"]
    queries, keys = size["num_attention_heads"] * head, size["num_key_value_heads"] * head
    linear = {
        **{"self_attn.q_proj": (queries, hidden), "self_attn.k_proj": (keys, hidden)},
        **{"self_attn.v_proj": (keys, hidden), "self_attn.o_proj": (hidden, queries)},
        **{"mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner)},
    }
    found: Shapes = {"model.embed_tokens.weight": ("BF16", (size["vocab_size"], hidden))}
    for number in range(size["num_hidden_layers"]):
        for part, (outputs, inputs) in linear.items():
            name = f"model.layers.{number}.{part}"
            chosen = next((each for text, each in (but or {}).items() if text in name), store)
            found |= chosen(name, outputs, inputs)
        found[f"model.layers.{number}.input_layernorm.weight"] = ("BF16", (hidden,))
    return found | {"lm_head.weight": ("BF16", (size["vocab_size"], hidden))}


def write_weights(file: Path, shapes: Shapes) -> None:
    """A file with this header and a hole for the data."""
    entries, end = {}, 0
    for name, (dtype, shape) in shapes.items():
        size = prod(shape) * _BYTES[dtype]
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end := end + size]}
    header = json.dumps(entries).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(file, 8 + len(header) + end)


def tokens(count: int = 256, **other: int) -> dict[str, object]:
    """A ``tokenizer.json``; ``other``: texts with numbers in place of the usual."""
    usual = {f"t{number}": number for number in range(count)}
    moved = {text for text, number in usual.items() if number in other.values()}
    return {"model": {"type": "BPE", "vocab": {t: n for t, n in usual.items() if t not in moved} | other}}


def checkpoint(
    folder: Path,
    config: Mapping[str, object] | None = None,
    store: Store = plain,
    *,
    but: Mapping[str, Store] | None = None,
    shapes: Shapes | None = None,
    text: Mapping[str, object] | None = None,
) -> Path:
    """A whole folder; ``shapes`` in place of a dense model's tensors, ``text`` in place of the usual tokenizer."""
    told = {**CONFIG, **(config or {})}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(told))
    write_weights(folder / "model.safetensors", llama(told, store, but) if shapes is None else shapes)
    (folder / "tokenizer.json").write_text(json.dumps(text or tokens()))
    (folder / "tokenizer_config.json").write_text(json.dumps(TEMPLATE))
    return folder


def adapter(folder: Path, **told: object) -> Path:
    """A LoRA adapter as PEFT writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    usual = {"r": 16, "lora_alpha": 32, "target_modules": ["q_proj", "v_proj"], "base_model_name_or_path": "org/model"}
    (folder / "adapter_config.json").write_text(json.dumps({**usual, **told}))
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
    write_weights(folder / "adapter_model.safetensors", {name: ("BF16", (16, 512))})
    return folder


def pair(model: Path, *overrides: str, device: str = "cuda", machine: object = MACHINE) -> Case:
    """Prefill and decode with this model."""
    base = "demo" if device == "cpu" else "api-throughput"
    keys = ("model.bundled=null", "model.id=null", f'model.path="{model}"', "quantization=null")
    one = () if device == "cpu" else ("roles.prefill.tensor_parallel=1", "roles.decode.tensor_parallel=1")
    return case(base, *keys, *one, *overrides, machine=machine)  # type: ignore[arg-type]


def drafted(model: Path, draft: Path | str, method: str, *overrides: str, tokens: int = 3) -> Case:
    """The pair with speculation on both roles."""
    speculation = f'{{method: {method}, num_speculative_tokens: {tokens}, draft: {{model: "{draft}"}}}}'
    return pair(model, f"speculation={speculation}", *overrides)


def judged(judged_case: Case, *names: str) -> list[Fault]:
    """What the rules of these names find; of a topic's where the name ends with a slash."""
    return [fault for rule in _rules(names) for fault in rule.judge(judged_case)]


def _rules(names: Iterable[str]) -> list:  # type: ignore[type-arg]
    return [
        rule
        for rule in RULES
        if any(rule.name == name or (name[-1] == "/" and rule.name.startswith(name)) for name in names)
    ]
