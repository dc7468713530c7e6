"""Decision: what one parsed request may do, and the bodies of its two legs.

The client's bytes are kept. Decode gets them with one key added, so numbers, key order and unknown keys reach the
engine as they were written.
"""

import json
from collections.abc import Set
from dataclasses import dataclass
from enum import StrEnum

from proxy.endpoint import Endpoint
from proxy.errors import BadRequest

JsonObject = dict[str, object]

KV_KEY = "kv_transfer_params"
# vLLM looks for them in a request's extra arguments, which a client can also fill directly.
_EXTRA_ARGUMENTS = (("vllm_xargs",), ("sampling_params", "extra_args"))
_ABSENT = object()

# What is refused with one token, or of no use to an engine that shall compute KV only. All else stays: the prompt may
# be made from it, or prefill refuses it in decode's place. Decode refuses some of it too late to tell prefill, which
# then keeps the KV until its lease ends.
_NOT_FOR_PREFILL = {
    "background",
    "best_of",
    "echo",
    "enable_response_messages",
    "min_tokens",
    "n",
    "prompt_logprobs",
    "return_prompt_text",
    "return_token_ids",
    "use_beam_search",
}
_ONE_TOKEN: dict[Endpoint, JsonObject] = {
    Endpoint.COMPLETIONS: {"max_tokens": 1},
    Endpoint.CHAT: {"max_tokens": 1, "max_completion_tokens": 1},
    Endpoint.RESPONSES: {"max_output_tokens": 1, "store": False},
    Endpoint.MESSAGES: {"max_tokens": 1},
}
_CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_COUNTS = (*_CAPS, "min_tokens")
# Tools that the client runs. Others may be run by the engine, which then generates again with the same KV parameters.
_CLIENT_TOOLS = {"function", "custom", "namespace"}


class Bypass(StrEnum):
    """Why a request was served aggregated although prefill and decode are configured."""

    SEVERAL_PROMPTS = "several_prompts"
    """The engine hands over the KV of the first prompt only."""
    PROMPT_EMBEDS = "prompt_embeds"
    """Embeddings are prompts besides the prompt."""
    SEVERAL_CHOICES = "several_choices"
    """Children of one request cannot share one hand-over."""
    BEAM_SEARCH = "beam_search"
    """Beams are requests of their own."""
    PROMPT_LOGPROBS = "prompt_logprobs"
    """Decode would have to compute the prompt again, and some versions of vLLM die of it."""
    ECHO = "echo"
    """As with the prompt's log-probabilities."""
    STORED_RESPONSE = "stored_response"
    """It continues a response that one engine has stored, or will be asked for later."""
    SERVER_TOOLS = "server_tools"
    """The engine runs tools and generates several times; KV is handed over once."""
    ROUTE = "route"
    """The route is passed on to one engine."""
    NO_PREFILL = "no_prefill"
    """No healthy prefill instance."""
    NO_DECODE = "no_decode"
    """No healthy decode instance, but an aggregated one."""
    NO_PAIR = "no_pair"
    """There are both, but between all of them hand-overs failed of late."""
    PREFILL_FAILED = "prefill_failed"
    """Prefill was unreachable, too slow or answered with an error of its own."""
    PREFILL_WITHOUT_KV = "prefill_without_kv"
    """Prefill answered without KV parameters."""
    DECODE_FAILED = "decode_failed"
    """Decode failed with the KV that was handed over."""
    SHORT_PROMPT = "short_prompt"
    """By ``pd.shorter_than``."""
    CACHED_PROMPT = "cached_prompt"
    """By ``pd.uncached_shorter_than``."""
    IDLE_DECODE = "idle_decode"
    """By ``pd.idle_decode``."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One request for a completion."""

    document: JsonObject
    """The body, parsed; never has KV parameters."""
    body: bytes
    """The same as text."""
    endpoint: Endpoint


def parse(raw: bytes, endpoint: Endpoint) -> Completion:
    """The request in a body; raises :class:`BadRequest` for anything but a JSON object.

    KV parameters come from engines only: from a client they could name any host to connect to, or kill the engine.
    """
    try:
        document = json.loads(raw.decode())
    except UnicodeDecodeError as exc:
        raise BadRequest("The request's body is not UTF-8.") from exc
    except (ValueError, RecursionError) as exc:
        raise BadRequest(f"The request's body is not JSON: {exc}") from exc
    if not isinstance(document, dict):
        raise BadRequest("The request's body is not a JSON object.")
    if _drop_kv_params(document):
        raw = _text(document)
    return Completion(document, raw, endpoint)


def without_kv_params(raw: bytes) -> bytes:
    """A JSON body of any route without a client's own KV parameters; what is no JSON is the engine's to refuse.

    Raises :class:`BadRequest` for JSON too deep to be looked into: an engine may be able to.
    """
    try:
        document = json.loads(raw)
    except ValueError:
        return raw
    except RecursionError as exc:
        raise BadRequest("The request's body is nested too deeply.") from exc
    return _text(document) if isinstance(document, dict) and _drop_kv_params(document) else raw


def _drop_kv_params(document: JsonObject) -> bool:
    """Take a client's KV parameters out of a document; whether there were any."""
    found = document.pop(KV_KEY, _ABSENT) is not _ABSENT
    for path in _EXTRA_ARGUMENTS:
        part: object = document
        for key in path:
            part = part.get(key) if isinstance(part, dict) else None
        if isinstance(part, dict):
            found |= part.pop(KV_KEY, _ABSENT) is not _ABSENT
    return found


def bypass(completion: Completion) -> Bypass | None:
    """Why this request cannot go through prefill and decode; ``None`` when it can."""
    document = completion.document
    if _several(document.get("prompt")):
        return Bypass.SEVERAL_PROMPTS
    if document.get("prompt_embeds") is not None:
        return Bypass.PROMPT_EMBEDS
    if any(document.get(key) not in (None, 1) for key in ("n", "best_of")):
        return Bypass.SEVERAL_CHOICES
    if document.get("use_beam_search") not in (None, False):
        return Bypass.BEAM_SEARCH
    if document.get("prompt_logprobs") is not None:
        return Bypass.PROMPT_LOGPROBS
    if document.get("echo") not in (None, False):
        return Bypass.ECHO
    if completion.endpoint is Endpoint.RESPONSES:
        return _bypass_of_response(document)
    return None


def has_one_choice(completion: Completion) -> bool:
    """Whether the tokens of the answer are those of one text, one after the other."""
    document = completion.document
    return document.get("n") in (None, 1) and not _several(document.get("prompt"))


def prefill_body(
    completion: Completion,
    kv_params: JsonObject | None,
    *,
    without: Set[str] = frozenset(),
    more: JsonObject | None = None,
) -> bytes:
    """The prefill leg: one token, not streamed, and the request to keep the KV, if the connector needs one.

    ``without`` names further keys that are left out, ``more`` are added.
    """
    document = completion.document
    unwanted = _NOT_FOR_PREFILL | without if without else _NOT_FOR_PREFILL
    kept = {key: value for key, value in document.items() if key not in unwanted}
    if document.get("stream") and isinstance(document.get("stream_options"), dict):
        del kept["stream_options"]  # which without a stream are refused
    caps = {key: 1 for key in _CAPS if key in kept} | _ONE_TOKEN[completion.endpoint]
    refused = {key: document[key] for key in _COUNTS if not _may_be_number(document.get(key))}
    asked = {} if kv_params is None else {KV_KEY: kv_params}
    return _text({**kept, **caps, **refused, **(more or {}), "stream": False, **asked})


def decode_body(completion: Completion, kv_params: JsonObject, more: JsonObject | None = None) -> bytes:
    """The decode leg: the client's bytes with ``more`` and ``kv_transfer_params`` as the last keys.

    A key that comes twice means what it says last.
    """
    end = completion.body.rindex(b"}")
    comma = b"," if completion.document else b""
    members = comma + _text({**(more or {}), KV_KEY: kv_params})[1:-1]
    return completion.body[:end] + members + completion.body[end:]


def _bypass_of_response(document: JsonObject) -> Bypass | None:
    if document.get("previous_response_id") is not None or document.get("background") not in (None, False):
        return Bypass.STORED_RESPONSE
    tools = document.get("tools")
    if isinstance(tools, list) and any(not isinstance(t, dict) or t.get("type") not in _CLIENT_TOOLS for t in tools):
        return Bypass.SERVER_TOOLS
    return None


def _may_be_number(value: object) -> bool:
    """Whether an engine can read it as a count, or leaves it out; engines read text, too."""
    if not isinstance(value, str):
        return not isinstance(value, list | dict)
    try:
        float(value)
    except ValueError:
        return False
    return True


def _several(prompt: object) -> bool:
    return isinstance(prompt, list) and len(prompt) > 1 and not isinstance(prompt[0], int)


def _text(document: JsonObject) -> bytes:
    try:
        return json.dumps(document, separators=(",", ":")).encode()
    except RecursionError as exc:  # a little less deep than what could not even be parsed
        raise BadRequest("The request's body is nested too deeply.") from exc
