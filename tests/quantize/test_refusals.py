"""Bad inputs, each refused for what it is, and nothing left that looks valid."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from launcher.quantize.worker_process import Worker
from tests.quantize.conftest import SMALL, quantize

_INT8 = {"algorithm": "rtn", "strength": 0.8, "groups": [{"scheme": "int8", "group": None, "symmetric": True}]}


class Silent:
    def progress(self, title, done, of):
        """Nobody looks."""

    def note(self, text):
        """Nobody looks."""


def with_program(interpreter, program, *arguments):
    """Run in the worker's interpreter, which has torch and safetensors."""
    subprocess.run([str(interpreter), "-c", program, *map(str, arguments)], check=True)


def test_a_weight_that_is_no_number_is_named(interpreter, model, traffic, tmp_path):
    folder = shutil.copytree(model, tmp_path / "broken")
    program = """
import sys
from safetensors.torch import load_file, save_file
file = sys.argv[1]
tensors = load_file(file)
tensors["model.layers.1.mlp.up_proj.weight"][3, 5] = float("nan")
save_file(tensors, file, {"format": "pt"})
"""
    with_program(interpreter, program, folder / "model.safetensors")
    run = quantize(folder, "--scheme", "int8", "--calibration", str(traffic), *SMALL, out=tmp_path / "out")
    assert run.code == 4
    assert "model.layers.1.mlp.up_proj.weight of" in run.output
    assert "has 1 numbers that are NaN or infinite" in run.output
    assert not run.out.exists()


def test_too_few_records_are_refused_before_anything_is_calibrated(model, traffic, tmp_path):
    run = quantize(model, "--scheme", "int8", "--calibration", str(traffic), "--records", "64", out=tmp_path / "out")
    assert run.code == 4
    assert "at least 32,768 are needed" in run.output
    assert not run.out.exists()


def test_experts_that_no_record_reaches_are_counted(interpreter, model, tmp_path):
    folder = tmp_path / "mixture"
    program = """
import sys, torch
from transformers import MixtralConfig, MixtralForCausalLM
torch.manual_seed(0)
config = MixtralConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                       num_key_value_heads=2, num_local_experts=8, num_experts_per_tok=1)
MixtralForCausalLM(config).to(torch.bfloat16).save_pretrained(sys.argv[1])
"""
    with_program(interpreter, program, folder)
    for file in model.glob("*token*"):
        shutil.copy(file, folder)
    records = tmp_path / "records.json"
    records.write_text(json.dumps({"calibration": [[1, 2, 3, 4]]}))
    job = {"step": "quantize", "model": str(folder), "records": str(records), "seed": 0, "out": str(tmp_path / "out")}
    recipe = {**_INT8, "ignore": ["lm_head", "re:.*gate$"], "groups": [{**_INT8["groups"][0], "layers": None}]}
    found = Worker(interpreter, tmp_path, os.environ, Silent()).run("step", {**job, "recipe": recipe})
    assert len(found["idle_experts"]["0"]) >= 4
    assert any(".experts." in name for name in found["quantized"])


def test_the_library_still_says_in_these_words_that_it_fell_back(interpreter):
    program = "import llmcompressor.modifiers.gptq.base as b, sys; sys.stdout.write(b.__file__)"
    file = subprocess.run([str(interpreter), "-c", program], check=True, capture_output=True, text=True).stdout
    source = Path(file.splitlines()[-1]).read_text()
    assert 'f"Hessian inversion failed for {num_fallback}/{total} modules "' in source


def test_the_same_seed_gives_the_same_bytes(interpreter, model, tmp_path):
    records = tmp_path / "records.json"
    records.write_text(json.dumps({"calibration": [[*range(start, start + 64)] for start in range(4, 200, 8)]}))
    recipe = {
        "algorithm": "smoothquant+gptq",
        "strength": 0.8,
        "groups": [{"scheme": "int8", "group": None, "symmetric": True, "layers": None}],
        "ignore": ["lm_head"],
    }
    made = []
    for name in ("one", "two"):
        job = {"step": "quantize", "model": str(model), "records": str(records), "seed": 0, "recipe": recipe}
        Worker(interpreter, tmp_path, os.environ, Silent()).run(name, {**job, "out": str(tmp_path / f"{name}-out")})
        made.append((tmp_path / f"{name}-out" / "model.safetensors").read_bytes())
    assert made[0] == made[1]
