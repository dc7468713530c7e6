"""Options that do nothing, or do not go together, are refused before anything starts."""

import os

import pytest

from launcher import model_folder
from launcher.errors import QuantizeError
from launcher.quantize import before, contradictions
from launcher.quantize.inputs import readable
from launcher.quantize.original import Original
from launcher.quantize.recipe import FITTING, Algorithm
from launcher.quantize.request import Request
from launcher.quantize.scheme import Scheme
from launcher.quantize.units import parts_of
from tests.launcher.preflight.folders import CONFIG, checkpoint


@pytest.fixture
def model(tmp_path):
    folder = model_folder.read(checkpoint(tmp_path / "model", {"num_attention_heads": 8}))
    return Original("model", folder.path, folder, parts_of(folder), "digest")


def refuse(model, tmp_path, scheme, split=1, **asked):
    asked = {"out": tmp_path / "out", **asked}
    request = Request(model="model", calibration=tmp_path / "traffic.jsonl", scheme=scheme, **asked)
    contradictions.refuse(request, scheme, model, split)


@pytest.mark.parametrize(
    ("scheme", "asked", "said"),
    [
        (Scheme.FP8, {"algorithm": Algorithm.GPTQ}, "--algorithm gptq does not go with fp8: use rtn"),
        (Scheme.INT8, {"algorithm": Algorithm.AWQ}, "--algorithm awq does not go with int8"),
        (Scheme.INT4, {"algorithm": Algorithm.SMOOTHQUANT_GPTQ}, "does not go with int4: use gptq or awq or rtn"),
        (Scheme.FP8, {"fast": True}, "--fast does nothing with fp8"),
        (Scheme.INT8, {"fast": True, "algorithm": Algorithm.RTN}, "--fast does nothing with --algorithm rtn"),
        (Scheme.INT8, {"tensor_parallel": 2, "split": 2}, "--tensor-parallel does nothing with int8"),
        (
            Scheme.INT4,
            {"tensor_parallel": 3, "split": 3},
            "tensor parallelism of 3 does not divide the 8 attention heads",
        ),
        (
            Scheme.INT8,
            {"records": 2000},
            "--records 2000: more than 1,024 records make calibration longer and not better",
        ),
        (Scheme.INT8, {"records": 8}, "--records 8: int8 needs at least 64"),
    ],
)
def test_they_are_refused(model, tmp_path, scheme, asked, said):
    with pytest.raises(QuantizeError, match=said):
        refuse(model, tmp_path, scheme, **asked)


@pytest.mark.parametrize(
    ("scheme", "asked"),
    [
        *((scheme, {"algorithm": algorithm}) for scheme, fitting in FITTING.items() for algorithm in fitting),
        (Scheme.INT8, {"fast": True, "algorithm": Algorithm.GPTQ}),
        (Scheme.INT4, {"tensor_parallel": 2, "split": 2}),
        (Scheme.FP8, {"records": 8}),
        (Scheme.INT8, {"records": 8, "force": True}),
    ],
)
def test_what_has_an_effect_is_taken(model, tmp_path, scheme, asked):
    refuse(model, tmp_path, scheme, **asked)


def test_nothing_is_written_into_the_models_own_folder(model, tmp_path):
    with pytest.raises(QuantizeError, match="in the model's own folder, which is never changed"):
        refuse(model, tmp_path, Scheme.INT8, out=model.path / "int8")


def test_records_leave_room_for_answers_in_the_models_context(model):
    context = CONFIG["max_position_embeddings"]
    assert before.most_tokens(100, model, 64) == 100
    assert before.most_tokens(context, model, 64) == context - 64
    with pytest.raises(QuantizeError, match=f"takes {context} tokens, and more than {context} are needed"):
        before.most_tokens(100, model, context)


def test_a_file_that_can_be_read_once_only_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("pipe", "no regular file"), (".", "is a folder"), ("none", "No such file")):
        with pytest.raises(QuantizeError, match=f"--task .*{said}.*name a file of JSON lines"):
            readable(tmp_path / name, "--task")
