"""Requests over the whole parameter space of the routes that generate.

Every request is deterministic: greedy or with a seed, without beam search, which may differ between two tries on one
engine. Not every one is valid: refusals have to be alike, too.
"""

from typing import Any

from hypothesis import strategies as st

from tests.real.conftest import MODEL

Body = dict[str, Any]
Request = tuple[str, Body]

BLOCK = 128
"""Tokens in a block of the KV cache on a CPU."""
CONTEXT = 1024
VOCABULARY = 995
_WORDS = (
    "This",
    "License",
    "applies",
    "to",
    "any",
    "work",
    "grüße",
    "日本",
    "0.5",
    '"x"',
    "\n",
    "abort",
    "error",
    "🙂",
)
_LENGTHS = (1, 2, 5, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, CONTEXT - 1, CONTEXT)
_SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
_PARAMETERS = {"type": "object", "properties": {"city": {"enum": ["Rom", "Oslo"]}}, "required": ["city"]}
_FUNCTION = {"name": "weather", "description": "Of a city", "parameters": _PARAMETERS}

_text = st.builds(
    lambda words, times: " ".join(words * times),
    st.lists(st.sampled_from(_WORDS), min_size=1, max_size=6),
    st.sampled_from((1, 1, 1, 3, 30, 100)),
)
_token_ids = st.builds(
    lambda length, first: [(first + 7 * i) % (VOCABULARY - 10) + 10 for i in range(length)],
    st.sampled_from(_LENGTHS),
    st.integers(0, VOCABULARY),
)
_some_ids = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=40, unique=True)
_tokens = st.sampled_from((1, 2, 5, 8, 8, 12, 12, 0, 2000))
_flag = st.booleans()
_stop = st.sampled_from(("e", "th", ["a", "o"], " the", ["\n"], "zzz", []))
_structured = st.sampled_from(
    (
        {"json": _SCHEMA},
        {"regex": "[ab]{2,6}"},
        {"choice": ["positive", "negative"]},
        {"json": _SCHEMA, "regex": "a"},
        {"json_object": True},
    )
)
_response_format = st.sampled_from(
    (
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "s", "schema": _SCHEMA}},
        {"type": "json_schema"},
    )
)
_penalty = st.sampled_from((-1.5, 0, 0.5, 1.5))

_sampling = {
    "top_p": st.sampled_from((0.1, 0.5, 1, 0)),
    "top_k": st.sampled_from((-1, 0, 1, 20)),
    "logit_bias": st.dictionaries(
        st.integers(0, VOCABULARY - 1).map(str), st.integers(-100, 100), min_size=1, max_size=3
    ),
    "presence_penalty": _penalty,
    "frequency_penalty": _penalty,
    "min_p": st.sampled_from((0, 0.05, 0.5)),
    "repetition_penalty": st.sampled_from((0.8, 1, 1.3)),
    "stop": _stop,
    "stop_token_ids": _some_ids,
    "include_stop_str_in_output": _flag,
    "ignore_eos": _flag,
    "skip_special_tokens": _flag,
    "structured_outputs": _structured,
    "priority": st.sampled_from((0, 0, 1)),
    "user": st.just("somebody"),
    "vllm_xargs": st.just({"x": 1}),
    "unknown": st.just({"to": ["all"]}),
    "kv_transfer_params": st.just({"do_remote_prefill": True, "remote_host": "203.0.113.7"}),
}
_completions = _sampling | {
    "min_tokens": st.sampled_from((0, 1, 3, 20)),
    "max_completion_tokens": _tokens,
    "n": st.sampled_from((1, 1, 2)),
    "best_of": st.sampled_from((1, 2)),
    "spaces_between_special_tokens": _flag,
    "truncate_prompt_tokens": st.sampled_from((-1, 1, 5, BLOCK, 2000)),
    "truncation_side": st.sampled_from(("left", "right")),
    "allowed_token_ids": _some_ids,
    "bad_words": st.sampled_from((["the"], ["a", " of"])),
    "add_special_tokens": _flag,
    "response_format": _response_format,
    "return_token_ids": _flag,
    "return_tokens_as_token_ids": _flag,
    "echo": _flag,
    "prompt_logprobs": st.sampled_from((0, 1)),
    "stream_options": st.sampled_from(({"include_usage": True}, {"include_usage": False})),
    "stream_interval": st.sampled_from((1, 3)),
    "repetition_detection": st.just({"max_pattern_size": 2, "min_pattern_size": 1, "min_count": 3}),
}
_of_text = _completions | {
    "logprobs": st.sampled_from((0, 1, 3, 50)),
    "suffix": st.sampled_from(("", "after")),
    "logprob_token_ids": _some_ids,
}
_of_chat = _completions | {
    "logprobs": _flag,
    "top_logprobs": st.sampled_from((0, 2, 50)),
    "logprob_token_ids": _some_ids,
    "add_generation_prompt": _flag,
    "continue_final_message": _flag,
    "chat_template_kwargs": st.just({"x": 1}),
    "reasoning_effort": st.sampled_from(("low", "none")),
    "include_reasoning": _flag,
    "return_prompt_text": _flag,
    "tools": st.just([{"type": "function", "function": _FUNCTION}]),
    "tool_choice": st.sampled_from(
        ("none", "auto", "required", {"type": "function", "function": {"name": "weather"}}, "never")
    ),
    "parallel_tool_calls": _flag,
}
_of_response = _sampling | {
    "instructions": _text,
    "text": st.sampled_from(
        (
            {"format": {"type": "text"}},
            {"format": {"type": "json_object"}},
            {"format": {"type": "json_schema", "name": "s", "schema": _SCHEMA}},
        )
    ),
    "tools": st.sampled_from(([{"type": "function", **_FUNCTION}], [{"type": "web_search_preview"}])),
    "tool_choice": st.sampled_from(("none", "auto", "required", {"type": "function", "name": "weather"})),
    "include": st.just(["message.output_text.logprobs"]),
    "top_logprobs": st.sampled_from((0, 2, 50)),
    "truncation": st.sampled_from(("auto", "disabled")),
    "metadata": st.just({"a": "b"}),
    "store": _flag,
    "background": _flag,
    "previous_response_id": st.just("resp_unknown"),
    "enable_response_messages": _flag,
    "max_tool_calls": st.just(1),
    "parallel_tool_calls": _flag,
}
_of_message = {
    "system": _text | _text.map(lambda text: [{"type": "text", "text": text}]),
    "stop_sequences": st.sampled_from((["e"], ["a", "o"], [])),
    "top_p": _sampling["top_p"],
    "top_k": _sampling["top_k"],
    "metadata": st.just({"user_id": "x"}),
    "tools": st.just([{"name": "weather", "input_schema": _PARAMETERS}]),
    "tool_choice": st.sampled_from(
        ({"type": "none"}, {"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "weather"})
    ),
    "thinking": st.sampled_from(({"type": "disabled"}, {"type": "adaptive"})),
    "output_config": st.sampled_from(({"effort": "low"}, {"format": {"type": "json_schema", "schema": _SCHEMA}})),
    "chat_template_kwargs": st.just({"x": 1}),
    "unknown": st.just(None),
}


def _message(role: str) -> st.SearchStrategy[Body]:
    return st.fixed_dictionaries({"role": st.just(role), "content": _text | _text.map(_parts)})


def _parts(text: str) -> list[Body]:
    return [{"type": "text", "text": text}]


_messages = st.builds(
    lambda before, last: [*before, last],
    st.lists(st.sampled_from(("user", "assistant")).flatmap(_message), max_size=2),
    _message("user"),
)


def _some_of(parameters: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Body]:
    """At most four of the parameters: with many, nearly every request would be refused."""
    names = st.sets(st.sampled_from(sorted(parameters)), max_size=4)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: parameters[name] for name in sorted(chosen)}))


_greedy = st.just({"temperature": 0})
_seeded = st.fixed_dictionaries(
    {"temperature": st.sampled_from((0.5, 1, 1.5)), "seed": st.integers(-(2**63), 2**63 - 1)}
)
_stream = st.sampled_from(
    (
        {},
        {"stream": False},
        {"stream": True},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    )
)


def _body(*parts: st.SearchStrategy[Body]) -> st.SearchStrategy[Body]:
    def merged(*dictionaries: Body) -> Body:
        body: Body = {"model": MODEL}
        for each in dictionaries:
            body |= each
        return body

    return st.builds(merged, *parts)


def _as(key: str, *values: st.SearchStrategy[Any]) -> st.SearchStrategy[Body]:
    return st.one_of(*values).map(lambda value: {key: value})


_prompts = _as(
    "prompt",
    _text,
    _token_ids,
    _token_ids,
    st.lists(_text, min_size=1, max_size=2),
    st.lists(_token_ids, min_size=1, max_size=1),
    st.lists(_some_ids, min_size=2, max_size=2),  # shorter than a block: which was cached would be chance
    st.sampled_from(("", [], [[]], "word " * 3000, [5, 9999])),
)
_caps = st.fixed_dictionaries({}, optional={"max_tokens": _tokens, "max_completion_tokens": _tokens})
_chat_caps = _caps.map(lambda caps: caps or {"stop": ["e", "a", "t", "o"]})  # without a limit, it talks on
_inputs = _as("input", _text, _messages.map(lambda messages: [each | {"content": "a b"} for each in messages]))

REQUESTS: st.SearchStrategy[Request] = st.one_of(
    st.tuples(st.just("/v1/completions"), _body(_prompts, _caps, _greedy | _seeded, _stream, _some_of(_of_text))),
    st.tuples(
        st.just("/v1/chat/completions"),
        _body(_as("messages", _messages), _chat_caps, _greedy | _seeded, _stream, _some_of(_of_chat)),
    ),
    st.tuples(
        st.just("/v1/responses"),
        _body(_inputs, _as("max_output_tokens", _tokens), _greedy | _seeded, _stream, _some_of(_of_response)),
    ),
    st.tuples(
        st.just("/v1/messages"),
        _body(_as("messages", _messages), _as("max_tokens", _tokens), _greedy, _stream, _some_of(_of_message)),
    ),
)
