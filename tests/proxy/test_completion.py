"""Bodies of the two legs."""

import json
import sys

import pytest

from proxy.completion import Bypass, bypass, decode_body, parse, prefill_body, without_kv_params
from proxy.endpoint import Endpoint
from proxy.errors import BadRequest


def prefill(document: dict, endpoint: Endpoint = Endpoint.CHAT) -> dict:
    return json.loads(prefill_body(parse(json.dumps(document).encode(), endpoint), {"do_remote_decode": True}))


@pytest.mark.parametrize(
    "given",
    [
        *({}, {"max_tokens": 80}, {"max_completion_tokens": 400}, {"max_tokens": 9, "max_completion_tokens": 7}),
        *({"max_tokens": " 80 "}, {"max_completion_tokens": "1_0"}, {"max_tokens": 5.0}, {"max_tokens": True}),
        {"max_tokens": None, "max_completion_tokens": None},
    ],
)
def test_prefill_makes_one_token_whatever_the_client_asked_of_chat(given):
    body = prefill(given)
    assert (body["max_tokens"], body["max_completion_tokens"]) == (1, 1)


def test_prefill_of_completions_caps_max_completion_tokens_only_when_the_client_sent_it():
    assert "max_completion_tokens" not in prefill({"max_tokens": 5}, Endpoint.COMPLETIONS)
    assert prefill({"max_completion_tokens": 5}, Endpoint.COMPLETIONS)["max_completion_tokens"] == 1


def test_prefill_does_not_stream():
    body = prefill({"stream": True, "stream_options": {"include_usage": True}})
    assert body["stream"] is False
    assert "stream_options" not in body


@pytest.mark.parametrize(
    "key",
    [
        *("min_tokens", "n", "best_of", "prompt_logprobs", "echo"),
        *("use_beam_search", "return_token_ids", "return_prompt_text"),
    ],
)
def test_prefill_is_not_asked_for_what_one_token_cannot_have_or_does_not_need(key):
    assert key not in prefill({key: 1})


@pytest.mark.parametrize(
    "given",
    [
        {"logprobs": True, "top_logprobs": 50, "logprob_token_ids": [1]},
        {"structured_outputs": {"regex": "("}},
        {"response_format": {"type": "json_schema"}},
        {"stream_options": {"include_usage": True}},
        {"stream": False, "stream_options": {}},
        {"max_tokens": "x", "max_completion_tokens": [5], "min_tokens": {}},
    ],
)
def test_prefill_sees_what_it_can_refuse_before_it_computes(given):
    assert prefill(given).items() >= given.items()


@pytest.mark.parametrize("given", [{}, {"max_output_tokens": 80, "store": True, "background": False}])
def test_prefill_of_a_response_makes_one_token_and_stores_nothing(given):
    assert prefill({"input": "x", "stream": True, **given}, Endpoint.RESPONSES) == {
        "input": "x",
        "max_output_tokens": 1,
        "store": False,
        "stream": False,
        "kv_transfer_params": {"do_remote_decode": True},
    }


def test_prefill_of_a_message_makes_one_token_of_the_same_prompt():
    kept = {"system": "s", "tools": [{"name": "f"}], "tool_choice": {"type": "any"}, "thinking": {"type": "disabled"}}
    assert prefill({"max_tokens": 80, "stream": True, **kept}, Endpoint.MESSAGES) == {
        **kept,
        "max_tokens": 1,
        "stream": False,
        "kv_transfer_params": {"do_remote_decode": True},
    }


def test_prefill_gets_everything_else_as_the_client_wrote_it():
    document = {"model": "m", "messages": [{"role": "user", "content": "héllo"}], "seed": 2**63, "zz": {"a": [1, None]}}
    body = prefill(document)
    assert {key: body[key] for key in document} == document
    assert body["kv_transfer_params"] == {"do_remote_decode": True}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"temperature":0.70,"top_p":1E-2,"seed":18446744073709551615,"zz":[1.0,null]}',
        b' {\n "prompt" : "a } b",\t"stop": ["}"] }\n ',
        '{"prompt":"grüße \\ud83d\\ude00"}'.encode(),
    ],
)
def test_decode_gets_the_clients_bytes_and_one_key_more(raw):
    body = decode_body(parse(raw, Endpoint.COMPLETIONS), {"a": [1]})
    assert body.replace(b',"kv_transfer_params":{"a":[1]}', b"") == raw
    assert json.loads(body) == json.loads(raw) | {"kv_transfer_params": {"a": [1]}}


def test_decode_body_of_an_empty_object_is_json():
    assert json.loads(decode_body(parse(b"{}", Endpoint.COMPLETIONS), {"a": 1})) == {"kv_transfer_params": {"a": 1}}


@pytest.mark.parametrize("key", [b"kv_transfer_params", b"kv\\u005ftransfer_params"])
def test_kv_parameters_of_a_client_are_dropped_however_written(key):
    raw = b'{"prompt":"x","' + key + b'":{"remote_host":"203.0.113.7"},"' + key + b'":1,"seed":7}'
    completion = parse(raw, Endpoint.COMPLETIONS)
    assert completion.body == b'{"prompt":"x","seed":7}'
    assert b"203.0.113.7" not in prefill_body(completion, {}) + decode_body(completion, {})


EXTRA = [
    ({"vllm_xargs": {"kv_transfer_params": "x", "a": 1}}, {"vllm_xargs": {"a": 1}}),
    ({"sampling_params": {"extra_args": {"kv_transfer_params": {}}}}, {"sampling_params": {"extra_args": {}}}),
    ({"kv_transfer_params": None, "vllm_xargs": {"kv_transfer_params": ["x"]}}, {"vllm_xargs": {}}),
]


@pytest.mark.parametrize(("given", "kept"), EXTRA)
def test_kv_parameters_are_dropped_wherever_an_engine_would_take_them_from(given, kept):
    raw = json.dumps(given).encode()
    assert json.loads(parse(raw, Endpoint.CHAT).body) == json.loads(without_kv_params(raw)) == kept


def test_the_same_words_in_a_prompt_or_a_tool_are_the_clients():
    raw = b'{"prompt": "kv_transfer_params", "tools": [{"parameters": {"kv_transfer_params": {}}}], "vllm_xargs": []}'
    assert parse(raw, Endpoint.COMPLETIONS).body is raw
    assert without_kv_params(raw) is raw


def test_a_body_that_cannot_be_looked_into_is_not_passed_on():
    with pytest.raises(BadRequest):
        without_kv_params(b'{"a":' * 200_000)


def test_a_body_without_kv_parameters_is_kept_byte_for_byte():
    raw = b'{ "prompt": "x", "temperature": 0.70 }'
    assert parse(raw, Endpoint.COMPLETIONS).body is raw


@pytest.mark.parametrize(
    "raw", [b"", b"{bad", b"[]", b'"text"', b"\xff\xfe", b"[" * 200_000, b'{"a":' + b"1" * 5000 + b"}"]
)
def test_what_is_no_json_object_is_a_bad_request(raw):
    with pytest.raises(BadRequest):
        parse(raw, Endpoint.CHAT)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"prompt": "x"}, None),
        ({"prompt": [1, 2, 3]}, None),
        ({"prompt": ["only one"]}, None),
        ({"prompt": ["a", "b"]}, Bypass.SEVERAL_PROMPTS),
        ({"prompt": [[1, 2], [3]]}, Bypass.SEVERAL_PROMPTS),
        ({"prompt": "x", "prompt_embeds": "AAAA"}, Bypass.PROMPT_EMBEDS),
        ({"n": 1, "best_of": None}, None),
        ({"n": 2}, Bypass.SEVERAL_CHOICES),
        ({"n": "3"}, Bypass.SEVERAL_CHOICES),
        ({"best_of": 3}, Bypass.SEVERAL_CHOICES),
        ({"use_beam_search": True}, Bypass.BEAM_SEARCH),
        ({"prompt_logprobs": 0}, Bypass.PROMPT_LOGPROBS),
        ({"echo": True, "logprobs": 1}, Bypass.ECHO),
        ({"echo": False, "logprobs": 1}, None),
        ({"logprobs": True, "top_logprobs": 2}, None),
    ],
)
def test_requests_that_cannot_go_through_pd_say_why(document, reason):
    assert bypass(parse(json.dumps(document).encode(), Endpoint.COMPLETIONS)) is reason


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"input": "x"}, None),
        ({"input": "x", "store": True, "background": False, "previous_response_id": None}, None),
        ({"input": "x", "previous_response_id": "resp_1"}, Bypass.STORED_RESPONSE),
        ({"input": "x", "background": True}, Bypass.STORED_RESPONSE),
        ({"tools": []}, None),
        ({"tools": [{"type": "function"}, {"type": "custom"}, {"type": "namespace"}]}, None),
        ({"tools": [{"type": "function"}, {"type": "web_search_preview"}]}, Bypass.SERVER_TOOLS),
        ({"tools": [{"type": "mcp"}]}, Bypass.SERVER_TOOLS),
        ({"tools": ["?"]}, Bypass.SERVER_TOOLS),
    ],
)
def test_responses_that_cannot_go_through_pd_say_why(document, reason):
    assert bypass(parse(json.dumps(document).encode(), Endpoint.RESPONSES)) is reason


def test_what_is_nested_so_deep_that_it_can_be_read_but_not_written_is_a_bad_request():
    refused = 0
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
        raw = b'{"kv_transfer_params": 1, "a": %b%b}' % (b"[" * depth, b"]" * depth)
        try:
            prefill_body(parse(raw, Endpoint.CHAT), {})
        except BadRequest:
            refused += 1
    assert refused
