"""What is said of a draft beside its target: its kind, its tokens, its length and its size."""

import json

import pytest

from launcher.preflight.finding import Severity
from tests.launcher.preflight.folders import AWQ, checkpoint, drafted, in_awq, judged, pair, plain, tokens

SMALL = {"hidden_size": 256, "intermediate_size": 256, "num_attention_heads": 4, "num_hidden_layers": 1}
EAGLE3 = {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 128}
ONE_LAYER = {**plain("layers.0.self_attn.q_proj", 512, 512), **plain("fc", 512, 1024)}
MAPPING = {"d2t": ("I64", (128,)), "t2d": ("I64", (256,)), **plain("midlayer.self_attn.q_proj", 512, 1024)}


@pytest.fixture
def model(tmp_path):
    return checkpoint(tmp_path / "model")


@pytest.mark.parametrize(
    ("draft", "shapes", "method", "right"),
    [
        (SMALL, None, "eagle3", "draft_model"),
        (SMALL, None, "eagle", "draft_model"),
        (EAGLE3, MAPPING, "draft_model", "eagle3"),
        (EAGLE3, MAPPING, "eagle", "eagle3"),
        ({"num_hidden_layers": 1}, ONE_LAYER, "draft_model", "eagle"),
        ({"num_hidden_layers": 1}, MAPPING, "draft_model", "eagle3"),
        ({"architectures": ["MedusaModel"], "model_type": "medusa"}, {}, "eagle", "medusa"),
        ({"architectures": ["DFlashDraftModel"]}, {}, "draft_model", "dflash"),
        ({"architectures": ["DeepSeekMTPModel"]}, {}, "draft_model", "mtp"),
        ({"architectures": ["Eagle3Speculator"], "speculators_config": {"algorithm": "eagle3"}}, {}, "eagle", "eagle3"),
    ],
)
def test_a_draft_of_another_kind_names_the_method_that_loads_it(tmp_path, model, draft, shapes, method, right):
    made = checkpoint(tmp_path / "draft", draft, shapes=shapes)
    fault, *_ = judged(drafted(model, made, method), "draft/kind")
    assert fault.key == "speculation.method"
    assert fault.fix.startswith(f"set speculation.method to {right}, or name a draft made for {method}")
    assert not judged(drafted(model, made, right), "draft/kind")


def test_a_head_whose_files_do_not_tell_is_believed(tmp_path, model):
    made = checkpoint(tmp_path / "draft", {"num_hidden_layers": 1}, shapes={})
    (made / "model.safetensors").rename(made / "pytorch_model.bin")
    assert not judged(drafted(model, made, "eagle"), "draft/kind")


def test_the_draft_of_one_role_is_judged_at_its_key(tmp_path, model):
    made = checkpoint(tmp_path / "draft", SMALL)
    own = f'roles.decode.speculation={{method: eagle3, num_speculative_tokens: 3, draft: "{made}"}}'
    (fault,) = judged(pair(model, own), "draft/kind")
    assert fault.key == "roles.decode.speculation.method"


def test_tokens_that_mean_other_texts_are_named_with_both_numbers(tmp_path, model):
    made = checkpoint(tmp_path / "draft", SMALL, text=tokens(256, x=3, y=200, z=201, w=202))
    fault, *_ = judged(drafted(model, made, "draft_model"), "draft/vocabulary")
    assert fault.what.startswith(f"8 tokens of {made} have other numbers than the model's (")
    assert "'t3': 3 and none" in fault.what
    assert "'x': none and 3" in fault.what
    assert fault.severity is Severity.ERROR


def test_a_few_tokens_of_many_are_a_warning(tmp_path):
    model = checkpoint(tmp_path / "model", {"vocab_size": 1000}, text=tokens(1000))
    made = checkpoint(tmp_path / "draft", {**SMALL, "vocab_size": 1000}, text=tokens(1000, mark=999))
    fault, *_ = judged(drafted(model, made, "draft_model"), "draft/vocabulary")
    assert fault.severity is Severity.WARNING


def test_marks_beside_the_vocabulary_count(tmp_path, model):
    text = {**tokens(255), "added_tokens": [{"id": 255, "content": "<mark>", "special": True}]}
    made = checkpoint(tmp_path / "draft", SMALL, text=text)
    fault, *_ = judged(drafted(model, made, "draft_model"), "draft/vocabulary")
    assert "'<mark>': none and 255" in fault.what


def test_a_vocabulary_in_another_form_with_the_same_tokens_is_the_same(tmp_path, model):
    unigram = {"model": {"type": "Unigram", "vocab": [[f"t{number}", -1.0] for number in range(256)]}}
    made = checkpoint(tmp_path / "draft", SMALL, text=unigram)
    assert not judged(drafted(model, made, "draft_model"), "draft/vocabulary")


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"model": []}', '{"model": {"vocab": 3}}', '{"added_tokens": [1]}']
)
def test_a_tokenizer_that_cannot_be_read_is_not_compared(tmp_path, model, content):
    made = checkpoint(tmp_path / "draft", SMALL)
    (made / "tokenizer.json").write_text(content)
    assert not judged(drafted(model, made, "draft_model"), "draft/vocabulary")


def test_the_tokens_of_another_tokenizer_of_the_profile_are_those_compared(tmp_path, model):
    other = tmp_path / "tokenizer"
    other.mkdir()
    (other / "tokenizer.json").write_text(json.dumps(tokens(256, other=7)))
    made = checkpoint(tmp_path / "draft", SMALL, text=tokens(256, other=7))
    named = f'model.tokenizer="{other}"'
    assert judged(drafted(model, made, "draft_model"), "draft/vocabulary")
    assert not judged(drafted(model, made, "draft_model", named), "draft/vocabulary")


def test_heads_draft_from_a_part_of_the_vocabulary_if_they_say_which(tmp_path, model):
    small = {**EAGLE3, "vocab_size": 128}
    assert judged(drafted(model, checkpoint(tmp_path / "a", small, shapes={}), "eagle3"), "draft/vocabulary-size")
    assert not judged(
        drafted(model, checkpoint(tmp_path / "b", small, shapes=MAPPING), "eagle3"), "draft/vocabulary-size"
    )


@pytest.mark.parametrize(
    ("method", "draft", "reason"),
    [
        ("draft_model", SMALL, "nothing is drafted for the whole batch"),
        ("eagle3", EAGLE3, "its drafts are accepted less and less"),
    ],
)
def test_what_happens_to_requests_longer_than_the_draft_is_said(tmp_path, model, method, draft, reason):
    made = checkpoint(tmp_path / "draft", {**draft, "max_position_embeddings": 2048})
    fault, *_ = judged(drafted(model, made, method), "draft/length")
    assert "is made for 2048 tokens, requests may have 32768" in fault.what
    assert reason in fault.why
    assert fault.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("scaling", "longest"),
    [
        ({"rope_type": "linear", "factor": 16.0}, 32768),
        ({"type": "yarn", "factor": 16.0, "original_max_position_embeddings": 2048}, 32768),
        ({"rope_type": "llama3", "factor": 8.0}, 2048),
        (None, 2048),
    ],
)
def test_positions_that_are_stretched_count(tmp_path, model, scaling, longest):
    made = checkpoint(tmp_path / "draft", {**SMALL, "max_position_embeddings": 2048, "rope_scaling": scaling})
    found = judged(drafted(model, made, "draft_model"), "draft/length")
    assert bool(found) is (longest < 32768)


def test_a_draft_cannot_be_asked_for_more_than_it_is_made_for(tmp_path, model):
    made = checkpoint(tmp_path / "draft", {**SMALL, "max_position_embeddings": 2048})
    fault, *_ = judged(drafted(model, made, "draft_model", "speculation.draft.max_model_len=4096"), "draft/length")
    assert fault.key == "speculation.draft.max_model_len"
    assert fault.severity is Severity.ERROR


@pytest.mark.parametrize(("k", "found"), [(1, None), (2, None), (3, Severity.ERROR), (4, Severity.WARNING)])
@pytest.mark.parametrize("own", [True, False])
def test_draft_tokens_come_in_multiples_of_what_the_heads_predict(tmp_path, k, found, own):
    predicting = {"num_nextn_predict_layers": 2}
    model = checkpoint(tmp_path / "model", predicting)
    made = checkpoint(tmp_path / "draft", predicting)
    inside = pair(model, f"speculation={{method: mtp, num_speculative_tokens: {k}}}")
    faults = judged(inside if own else drafted(model, made, "mtp", tokens=k), "draft/tokens-per-step")
    assert {each.severity for each in faults} == ({found} if found else set())


def test_a_draft_of_its_own_numbers_beside_a_quantized_target_is_fine(tmp_path):
    model = checkpoint(tmp_path / "model", {"quantization_config": AWQ}, in_awq)
    made = checkpoint(tmp_path / "draft", SMALL)
    case = drafted(model, made, "draft_model")
    assert not judged(case, "draft/quantization", "draft/kind", "draft/vocabulary", "quantization/")
    assert all("quantization" not in json.loads(_speculative(engine)) for engine in case.plan.engines)


def test_the_draft_s_own_quantization_reaches_the_engine(tmp_path, model):
    case = drafted(model, checkpoint(tmp_path / "draft", SMALL), "draft_model", "speculation.draft.quantization=fp8")
    assert [json.loads(_speculative(engine))["quantization"] for engine in case.plan.engines] == ["fp8", "fp8"]


def test_a_large_draft_is_told_with_its_share(tmp_path, model):
    made = checkpoint(tmp_path / "draft", {"num_hidden_layers": 2})
    fault, *_ = judged(drafted(model, made, "draft_model"), "draft/size")
    assert "of the weights of" in fault.what
    assert "68%" in fault.what
    assert not judged(drafted(model, checkpoint(tmp_path / "small", SMALL), "draft_model"), "draft/size")


@pytest.mark.parametrize(
    ("name", "taken"), [("org/eagle-1b", "eagle"), ("org/x-eagle3-8b", "eagle3"), ("a/dflash", "dflash")]
)
def test_a_name_by_which_the_engine_takes_another_method_is_told(model, name, taken):
    fault, *_ = judged(drafted(model, name, "draft_model"), "draft/name-chooses-method")
    assert f"set speculation.method to {taken}" in fault.fix
    assert not judged(drafted(model, name, "eagle3"), "draft/name-chooses-method")


def test_a_draft_that_is_not_here_is_not_judged(model):
    assert not judged(drafted(model, "org/draft", "draft_model"), "draft/")


def _speculative(engine):
    return engine.argv[engine.argv.index("--speculative-config") + 1]
