"""What a model's folder says of itself."""

import json
import os

import pytest

from launcher.model_folder import Tensor, quantization_of, read, text_part
from tests.launcher.builders import LLAMA

TENSORS = {"embed": ("BF16", [10, 4], 80), "norm": ("F32", [4], 16), "packed": ("I32", [2, 3], 24)}


def safetensors(tensors, *, metadata=None, data=None):
    """A file with these tensors, and zeros as their data."""
    entries, end = {} if metadata is None else {"__metadata__": metadata}, 0
    for name, (dtype, shape, size) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end := end + size]}
    header = json.dumps(entries).encode()
    return len(header).to_bytes(8, "little") + header + bytes(end if data is None else data)


@pytest.fixture
def model(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "model.safetensors").write_bytes(safetensors(TENSORS, metadata={"format": "pt"}))
    return tmp_path


def test_all_tensors_are_known_without_their_data(model):
    found = read(model)
    assert found.config == LLAMA
    assert found.tensors == tuple(
        Tensor(name, dtype, tuple(shape), size, "model.safetensors") for name, (dtype, shape, size) in TENSORS.items()
    )
    assert [tensor.elements for tensor in found.tensors] == [40, 4, 6]
    assert found.weight_files == {"model.safetensors": (model / "model.safetensors").stat().st_size}
    assert (found.missing, found.faults, found.quantization) == ((), (), {})


def test_a_sparse_file_of_a_hundred_gigabytes_is_read_as_fast(model):
    size = 100_000_000_000
    file = model / "model.safetensors"
    file.write_bytes(safetensors({"w": ("BF16", [size // 2], size)}, data=0))
    os.truncate(file, file.stat().st_size + size)
    found = read(model)
    assert [tensor.size for tensor in found.tensors] == [size]
    assert not found.faults


def test_an_index_says_which_files_count_and_which_are_missing(model):
    (model / "model-00001-of-2.safetensors").write_bytes(safetensors({"a": ("F16", [2], 4)}))
    places = {"a": "model-00001-of-2.safetensors", "b": "model-00002-of-2.safetensors"}
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    found = read(model)
    assert [tensor.name for tensor in found.tensors] == ["a"]
    assert found.missing == ("model-00002-of-2.safetensors",)
    assert [*found.weight_files] == ["model-00001-of-2.safetensors"]


def test_the_files_of_mistral_s_own_format_are_those_that_the_engine_loads(model):
    (model / "consolidated.safetensors").write_bytes(safetensors({"wq": ("BF16", [2], 4)}))
    assert [tensor.name for tensor in read(model).tensors] == ["wq"]


def test_pickles_count_by_their_size_only_where_there_is_nothing_else(model):
    (model / "pytorch_model.bin").write_bytes(bytes(100))
    assert "pytorch_model.bin" not in read(model).weight_files
    (model / "model.safetensors").unlink()
    found = read(model)
    assert (found.weight_files, found.weight_bytes, found.tensors) == ({"pytorch_model.bin": 100}, 100, ())


@pytest.mark.parametrize("nesting", [("text_config",), ("thinker_config", "text_config"), ("llm_config",)])
def test_the_language_model_s_part_is_found_and_completed(nesting):
    nested = {"num_hidden_layers": 7}
    for key in reversed(nesting):
        nested = {key: nested}
    assert text_part({"num_hidden_layers": 1, "vocab_size": 5} | nested)["num_hidden_layers"] == 7
    assert text_part({"num_hidden_layers": 1, "vocab_size": 5} | nested)["vocab_size"] == 5
    assert text_part({"text_config": None, "num_hidden_layers": 2})["num_hidden_layers"] == 2


def test_quantization_is_found_wherever_it_is_told(model):
    awq = {"quant_method": "awq", "bits": 4}
    assert quantization_of({"quantization_config": awq}) == awq
    assert quantization_of({"text_config": {"quantization_config": awq}}) == awq
    assert quantization_of({"compression_config": awq}) == awq
    (model / "quantize_config.json").write_text(json.dumps({"bits": 4, "group_size": 128}))
    assert read(model).quantization == {"quant_method": "gptq", "bits": 4, "group_size": 128}
    (model / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "FP8"}}))
    assert read(model).quantization == {"quant_method": "modelopt", "quant_algo": "FP8"}


def test_a_folder_that_does_not_exist_is_one_fault(tmp_path):
    (fault,) = read(tmp_path / "gone").faults
    assert fault == f"{tmp_path / 'gone'} cannot be read: No such file or directory"


def test_an_empty_folder_says_nothing(tmp_path):
    found = read(tmp_path)
    assert (found.config, found.tensors, found.faults, found.weight_bytes) == ({}, (), (), 0)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is no safetensors file: it does not begin with a header"),
        (bytes(1000), "is no safetensors file: it does not begin with a header"),
        (b"\xff" * 100, "is no safetensors file: it does not begin with a header"),
        ((100).to_bytes(8, "little") + b"{}", "is cut off within its header"),
        ((2).to_bytes(8, "little") + b"[]", "is no safetensors file: its header is no JSON object"),
        ((2).to_bytes(8, "little") + b"{]", "is no safetensors file: its header is no JSON object"),
        ((10000).to_bytes(8, "little") + b"[" * 10000, "is no safetensors file: its header is no JSON object"),
        (safetensors(TENSORS, data=119), "is cut off: it has"),
        (safetensors({"w": ("BF16", [3], 4)}), ": the tensor w has 4 bytes, its shape and type say 6"),
        (safetensors({"w": ("BF16", [-3], 4)}), ": its header says nothing sensible of the tensor w"),
        (safetensors({"w": (["BF16"], [3], 6)}), ": its header says nothing sensible of the tensor w"),
        (safetensors({"w": ("BF16", 3, 6)}), ": its header says nothing sensible of the tensor w"),
        (safetensors({"w": ("BF16", ["3"], 6)}), ": its header says nothing sensible of the tensor w"),
        ((9).to_bytes(8, "little") + b'{"w":[]} ', ": its header says nothing sensible of the tensor w"),
    ],
)
def test_a_strange_weight_file_is_a_fault_with_its_name(model, content, fault):
    (model / "model.safetensors").write_bytes(content)
    (told,) = read(model).faults
    assert told.startswith(f"{model / 'model.safetensors'}{'' if fault[0] == ':' else ' '}{fault}")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is no JSON"),
        (b"[1]", "is no JSON object"),
        (b"\xff\xfe", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"a": ' + b"1" * 5000 + b"}", "is no JSON"),
    ],
)
def test_a_strange_configuration_is_a_fault_with_its_name(model, content, fault):
    (model / "config.json").write_bytes(content)
    found = read(model)
    assert found.faults == (f"{model / 'config.json'} {fault}",)
    assert (found.config, len(found.tensors)) == ({}, 3)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": []}', '{"weight_map": {}}'])
def test_an_index_that_indexes_nothing_is_a_fault(model, content):
    (model / "model.safetensors.index.json").write_text(content)
    found = read(model)
    assert len(found.tensors) == 3
    assert found.faults[-1].endswith("has no weight_map: it does not say which files hold the weights")


def test_places_in_an_index_that_are_no_names_are_ignored(model):
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"a": 1, "b": "model.safetensors"}}')
    assert len(read(model).tensors) == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_a_fault(model):
    (model / "model.safetensors").chmod(0)
    (fault,) = read(model).faults
    assert fault.endswith("model.safetensors cannot be read: Permission denied")
