"""What is said of a model's folder: whole, of a kind that answers in text, with a tokenizer; and of its adapters."""

import ast
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from launcher import model_folder
from launcher.preflight import judge
from launcher.preflight.checkpoints.engine_models import Kind, data, look_up
from launcher.preflight.finding import Layer, Severity
from tests.launcher.builders import case
from tests.launcher.preflight.folders import (
    AWQ,
    CONFIG,
    adapter,
    checkpoint,
    drafted,
    in_awq,
    judged,
    pair,
    plain,
    tokens,
)


def test_shards_that_an_index_names_and_that_are_not_there_are_counted(tmp_path):
    places = {f"w{number}": f"model-{number}.safetensors" for number in range(5)}
    folder = checkpoint(tmp_path)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (fault,) = judged(pair(folder), "model/shards")
    assert fault.what.startswith(
        f"5 weight files that the model's index names are not in {folder}: model-0.safetensors"
    )
    assert fault.what.endswith("model-2.safetensors and 2 more")


def test_a_file_that_is_cut_off_is_told_with_its_sizes(tmp_path):
    folder = checkpoint(tmp_path)
    file = folder / "model.safetensors"
    whole = file.stat().st_size
    with file.open("r+b") as opened:
        opened.truncate(whole - 1)
    (fault,) = judged(pair(folder), "model/readable")
    assert fault.what == f"{file} is cut off: it has {whole - 1:,} bytes and should have {whole:,}"


def test_a_draft_and_an_adapter_that_are_cut_off_are_told_at_their_keys(tmp_path):
    draft, added = checkpoint(tmp_path / "draft"), adapter(tmp_path / "adapter")
    (draft / "model.safetensors").write_bytes(b"")
    (added / "adapter_model.safetensors").write_bytes(b"")
    judged_case = drafted(
        checkpoint(tmp_path / "m"), draft, "draft_model", f'model.lora={{adapters: {{a: "{added}"}}}}'
    )
    assert {each.key for each in judged(judged_case, "model/readable")} == {
        "speculation.draft",
        "model.lora.adapters.a",
    }


@pytest.mark.parametrize(
    ("name", "severity", "said"),
    [
        ("Qwen3ForCausalLM", None, ""),
        ("LlamaForCausalM", Severity.ERROR, "LlamaForCausalLM is known"),
        ("CompletelyOwnForCausalLM", Severity.ERROR, "upgrade the engine or serve another model"),
        ("MPTForCausalLM", Severity.ERROR, "which vLLM had until 0.28.0"),
        ("BartForConditionalGeneration", Severity.ERROR, "install the plugin of https://"),
        ("HeliumForCausalLM", Severity.WARNING, "runs by Transformers' code"),
        ("BertModel", Severity.ERROR, "which gives embeddings, classes or scores"),
        ("Qwen3ForSequenceClassification", Severity.ERROR, "which gives embeddings, classes or scores"),
        ("Qwen3Model", Severity.ERROR, "which gives embeddings, classes or scores"),
        ("LlamaForCausalLMEagle3", Severity.ERROR, "which only drafts for another model"),
    ],
)
def test_an_architecture_is_judged_as_the_engine_would(tmp_path, name, severity, said):
    found = judged(pair(checkpoint(tmp_path, {"architectures": [name]})), "model/architecture")
    assert [each.severity for each in found] == ([severity] if severity else [])
    assert all(said in each.message for each in found)


def test_another_engine_may_know_more_architectures(tmp_path):
    folder = checkpoint(tmp_path, {"architectures": ["NewForCausalLM"]})
    (fault,) = judged(pair(folder, "engine_command=[newer-vllm, serve]"), "model/architecture")
    assert fault.severity is Severity.WARNING


def test_an_option_that_tells_the_architecture_otherwise_is_believed(tmp_path):
    folder = checkpoint(tmp_path, {"architectures": ["NewForCausalLM"]})
    told = "engine_args.hf-overrides={architectures: [LlamaForCausalLM]}"
    assert not judged(pair(folder, told), "model/architecture")


def test_a_configuration_that_names_no_architecture_is_told(tmp_path):
    (fault,) = judged(pair(checkpoint(tmp_path, {"architectures": None})), "model/architecture")
    assert "names no architecture" in fault.what


@pytest.mark.parametrize("trusts", [False, True])
def test_a_model_of_its_own_code_wants_trust(tmp_path, trusts):
    own = {"architectures": ["OwnForCausalLM"], "auto_map": {"AutoModelForCausalLM": "own.Own"}}
    found = judged(
        pair(checkpoint(tmp_path, own), f"model.trust_remote_code={str(trusts).lower()}"), "model/architecture"
    )
    assert ["set model.trust_remote_code" in each.fix for each in found] == ([] if trusts else [True])


@pytest.mark.parametrize(("kind", "count"), [("llama", 0), ("own_kind", 1)])
def test_a_configuration_that_only_its_own_code_reads_wants_trust(tmp_path, kind, count):
    own = {"model_type": kind, "auto_map": {"AutoConfig": "own.Config"}}
    assert len(judged(pair(checkpoint(tmp_path, own)), "model/own-code")) == count


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_the_architectures_known_are_those_of_the_installed_engine():
    spec = find_spec("vllm")
    source = (Path(spec.origin).parent / "model_executor/models/registry.py").read_text()
    lists = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            keys = [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
            lists[node.targets[0].id] = set(keys)
    generating = (
        lists["_TEXT_GENERATION_MODELS"] | lists["_MULTIMODAL_MODELS"] | lists["_TRANSFORMERS_SUPPORTED_MODELS"]
    )
    assert generating <= set(data()["generate"])
    assert set(data()["draft"]) == lists["_SPECULATIVE_DECODING_MODELS"]
    assert set(data()["removed"]) == lists["_PREVIOUSLY_SUPPORTED_MODELS"]
    assert set(data()["plugin"]) == lists["_OOT_SUPPORTED_MODELS"]
    pooling = [name for name in lists if (name.endswith("_MODELS") and "EMBEDDING" in name) or "CLASSIFICATION" in name]
    assert all(look_up(each).kind in {Kind.POOLS, Kind.GENERATES} for name in pooling for each in lists[name])


def test_a_file_of_another_format_beside_the_weights_is_no_fault(tmp_path):
    folder = checkpoint(tmp_path)
    (folder / "model-q4.gguf").write_bytes(b"")
    assert not judged(pair(folder), "model/")


@pytest.mark.parametrize(("written", "instead"), [("/models/a", "/models/a"), ("~/a", "~/a"), ("./a", "./a")])
def test_a_path_in_place_of_a_hub_id_names_the_right_key(written, instead):
    (fault,) = judged(case("interactive", f"model.id={written}"), "model/id-is-an-id")
    assert (fault.key, fault.fix) == ("model.id", f"write model.path: {instead}, and remove model.id")


def test_a_folder_that_is_here_is_no_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint(tmp_path / "org" / "model")
    (fault,) = judged(case("interactive", "model.id=org/model"), "model/id-is-an-id")
    assert "write model.path: ./org/model" in fault.fix
    (fault,) = judged(case("interactive", "speculation.draft=org/model"), "model/named-folders")
    assert "write ./org/model" in fault.fix


@pytest.mark.parametrize("written", ["org/name/more", "a name", "org/na:me"])
def test_what_cannot_be_a_hub_id_is_told(written):
    (fault,) = judged(case("interactive", f'model.id="{written}"'), "model/id-is-an-id")
    assert "is no hub id" in fault.what


def test_a_hub_id_in_place_of_a_path_names_the_right_key():
    (fault,) = judged(case("interactive", "model.id=null", "model.path=org/name"), "model/files-there")
    assert "write model.id: org/name" in fault.fix


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer.model", "tekken.json", "qwen.tiktoken", "vocab.json"])
def test_one_file_is_enough_for_a_tokenizer(tmp_path, file):
    folder = checkpoint(tmp_path)
    (folder / "tokenizer.json").unlink()
    assert judged(pair(folder), "tokenizer/there")
    (folder / file).write_text("{}")
    assert not judged(pair(folder), "tokenizer/there")


def test_another_tokenizer_stands_in_for_the_model_s(tmp_path):
    folder, other = checkpoint(tmp_path / "model"), checkpoint(tmp_path / "other")
    (folder / "tokenizer.json").unlink()
    assert not judged(pair(folder, f'model.tokenizer="{other}"'), "tokenizer/")


@pytest.mark.parametrize("file", ["chat_template.jinja", "chat_template.json", None])
def test_a_chat_template_may_stand_in_a_file_or_in_the_profile(tmp_path, file):
    folder = checkpoint(tmp_path)
    (folder / "tokenizer_config.json").unlink()
    if file:
        (folder / file).write_text("{}")
    overrides = () if file else (f'model.chat_template="{folder}/config.json"',)
    assert not judged(pair(folder, *overrides), "tokenizer/chat-template")


def test_a_tokenizer_larger_than_the_model_names_a_token_and_both_sizes(tmp_path):
    other = checkpoint(tmp_path / "other", text=tokens(300))
    (fault,) = judged(pair(checkpoint(tmp_path / "model"), f'model.tokenizer="{other}"'), "tokenizer/fits-model")
    assert "tokens up to 299 (e.g. 't256'), the model's vocabulary has 256" in fault.what


def test_weights_in_32_bits_are_told(tmp_path):
    shapes = {name: ("F32", shape) for name, (_, shape) in plain("model.layers.0.mlp.up_proj", 512, 512).items()}
    (fault,) = judged(pair(checkpoint(tmp_path, shapes=shapes)), "model/32-bits")
    assert fault.severity is Severity.WARNING
    assert fault.fix.startswith("convert it to bfloat16")


def with_adapter(folder, made, *overrides):
    return pair(folder, "model.served_name=org/model", f'model.lora={{adapters: {{a: "{made}"}}}}', *overrides)


@pytest.mark.parametrize(("rank", "fix"), [(17, "set model.lora.max_rank: 32"), (1000, "train it with a rank of 512")])
def test_a_rank_that_is_too_large_names_the_value_that_is_enough(tmp_path, rank, fix):
    made = adapter(tmp_path / "adapter", rank_pattern={"q_proj": rank})
    (fault,) = judged(with_adapter(checkpoint(tmp_path / "model"), made), "lora/rank")
    assert fault.key == "model.lora.max_rank"
    assert f"has rank {rank}, more than max_rank 16" in fault.what
    assert fault.fix.startswith(fix)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"use_dora": True}, "DoRA"),
        ({"bias": "all"}, "biases (bias: all)"),
        ({"modules_to_save": ["lm_head"]}, "lm_head in modules_to_save"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights: pissa"),
        ({"layer_replication": [[0, 2]]}, "layer_replication"),
    ],
)
def test_variants_of_lora_that_the_engine_does_not_compute_are_named(tmp_path, told, said):
    made = adapter(tmp_path / "adapter", **told)
    (fault,) = judged(with_adapter(checkpoint(tmp_path / "model"), made), "lora/variant")
    assert said in fault.what


@pytest.mark.parametrize("base", ["org/model", "other/Model-Instruct", "/models/model", None])
def test_an_adapter_of_the_same_base_model_passes_however_that_is_named(tmp_path, base):
    made = adapter(tmp_path / "adapter", base_model_name_or_path=base)
    assert not judged(with_adapter(checkpoint(tmp_path / "model"), made), "lora/")


def test_an_adapter_beside_a_quantized_model_is_fine(tmp_path):
    folder = checkpoint(tmp_path / "model", {"quantization_config": AWQ}, in_awq)
    assert not judged(with_adapter(folder, adapter(tmp_path / "adapter")), "lora/")


def test_an_adapter_of_another_size_is_found_by_its_weights(tmp_path):
    folder = checkpoint(tmp_path / "model", {"hidden_size": 1024})
    (fault,) = judged(with_adapter(folder, adapter(tmp_path / "adapter")), "lora/modules")
    assert "has 512 inputs in" in fault.what


def test_a_whole_model_is_no_adapter(tmp_path):
    (fault,) = judged(with_adapter(checkpoint(tmp_path / "model"), checkpoint(tmp_path / "other")), "lora/files-there")
    assert "is a whole model, not an adapter" in fault.what


def test_models_of_the_hub_are_judged_where_they_were_loaded_to(tmp_path):
    kept = tmp_path / "models--org--model"
    folder = checkpoint(kept / "snapshots" / "abc", {"architectures": ["BertModel"]})
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc")
    known = case("interactive", "model.id=org/model", "speculation=null", environ={"HF_HUB_CACHE": str(tmp_path)})
    assert folder.is_dir()
    assert [each.key for each in judged(known, "model/architecture")] == ["model.id"]
    assert not judged(case("interactive", "model.id=org/other", "speculation=null"), "model/architecture")


@pytest.mark.parametrize(
    "content", ["[]", "3", '{"architectures": "Llama"}', '{"vocab_size": "many", "hidden_size": []}']
)
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "tokenizer.json", "adapter_config.json"])
def test_no_foreign_file_breaks_preflight(tmp_path, name, content):
    folder, draft, added = checkpoint(tmp_path / "m"), checkpoint(tmp_path / "d"), adapter(tmp_path / "a")
    for each in (folder, draft, added):
        (each / name).write_text(content)
    named = f'model.lora={{adapters: {{a: "{added}"}}}}'
    assert all(each.fault.what for each in judge(drafted(folder, draft, "draft_model", named), {Layer.STATIC}))


@pytest.mark.parametrize("key", [*CONFIG, "quantization_config", "rope_scaling", "text_config", "auto_map"])
@pytest.mark.parametrize("value", [None, 0, -1, "text", [], {}, [1, 2], {"a": 1}, 1.5, True])
def test_no_value_of_a_configuration_breaks_preflight(tmp_path, key, value):
    folder, draft = checkpoint(tmp_path / "m"), checkpoint(tmp_path / "d")
    for each in (folder, draft):
        (each / "config.json").write_text(json.dumps({**CONFIG, key: value}))
    assert all(each.fault.what for each in judge(drafted(folder, draft, "eagle3"), {Layer.STATIC}))


def test_each_folder_is_read_once_however_many_rules_ask(tmp_path, monkeypatch):
    read, told = [], model_folder.read
    monkeypatch.setattr(model_folder, "read", lambda path: read.append(path) or told(path))
    folder, draft = checkpoint(tmp_path / "m"), checkpoint(tmp_path / "d", text=tokens(256, other=7))
    assert [*judge(drafted(folder, draft, "draft_model"), {Layer.STATIC})]
    assert sorted(read) == [draft, folder]
