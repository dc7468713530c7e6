"""Decision: what a prompt looks like from outside: how long it is, and which others begin as it does.

The prompt is written down as bytes, four for each token: token ids as they are, text as UTF-8, which comes to about
four bytes a token for most languages and tokenizers. Nothing is tokenized: 400 KB cost about a millisecond.
"""

import json
from array import array
from collections.abc import Iterator

from proxy.completion import Completion
from proxy.endpoint import Endpoint
from proxy.hint import BLOCK_TOKENS, Hint

_TOKEN_BYTES = 4
_BLOCK = BLOCK_TOKENS * _TOKEN_BYTES
_MOST_BLOCKS = 4096
"""Bounds the work for a prompt of many megabytes."""
_MEDIA_TOKENS = 1000
"""An image, a sound or a video; how many it really is only the model knows."""
# Chat templates write these before the first message.
_HEAD = (
    *("system", "instructions", "previous_response_id", "tools", "documents"),
    *("chat_template", "chat_template_kwargs", "reasoning_effort", "mm_processor_kwargs"),
)
# A session is a conversation. ``user`` is none: it names a person, or an application with all its traffic.
_SESSION_KEYS = ("session_id", "prompt_cache_key")


def hint_of(completion: Completion, *, session: str | None, hashed: bool) -> Hint:
    """The hint of a request, with ``session`` as its header names it; ``hashed``: with the prompt's blocks."""
    text = _written(completion)
    blocks = tuple(_chain(text, _seed(completion))) if hashed else ()
    return Hint(-(-len(text) // _TOKEN_BYTES), blocks, session)


def tokens_of(completion: Completion) -> int:
    """Of the prompt, as its hint says it."""
    return -(-len(_written(completion)) // _TOKEN_BYTES)


def session_of(completion: Completion, header: str | None) -> str | None:
    """The session that a request names, in its header or, without one, in its body."""
    if header:
        return header
    named = (completion.document.get(key) for key in _SESSION_KEYS)
    return next((name for name in named if isinstance(name, str) and name), None)


def _seed(completion: Completion) -> int:
    """KV caches of different models (LoRA adapters are some) or salts have nothing in common."""
    document = completion.document
    return hash(f"{document.get('model')}\0{document.get('cache_salt')}")


def _chain(text: bytes, seed: int) -> Iterator[int]:
    """Python's own hash is fast, and keyed with a secret, so that nobody can make prompts collide on purpose."""
    for start in range(0, min(len(text) - _BLOCK + 1, _MOST_BLOCKS * _BLOCK), _BLOCK):
        seed = hash((seed, text[start : start + _BLOCK]))
        yield seed


def _written(completion: Completion) -> bytes:
    document = completion.document
    if completion.endpoint is not Endpoint.COMPLETIONS:
        return _encoded("".join(_chat(document)))
    prompt = document.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and not isinstance(prompt[0], int):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return _encoded(prompt)
    if isinstance(prompt, list):
        try:
            return array("I", prompt).tobytes()
        except (TypeError, OverflowError):  # several prompts, or what the engine will refuse
            pass
    return b"" if prompt is None else _encoded(_dumped(prompt))


def _chat(document: dict[str, object]) -> Iterator[str]:
    head = {key: document[key] for key in _HEAD if document.get(key) is not None}
    if head:
        yield _dumped(head)
    messages = document.get("messages", document.get("input"))  # the latter in responses
    if isinstance(messages, str):
        yield messages
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            yield from _message(message)


def _message(message: dict[str, object]) -> Iterator[str]:
    yield f"\0{message.get('role')}\0"
    content = message.get("content")
    for part in content if isinstance(content, list) else (content,):
        if isinstance(part, dict):
            part = part["text"] if isinstance(part.get("text"), str) else _stand_in(part)
        yield part if isinstance(part, str) else ""
    rest = {key: value for key, value in message.items() if key not in ("role", "content") and value is not None}
    if rest:
        yield _dumped(rest)


def _stand_in(media: dict[str, object]) -> str:
    """As long as its tokens and different for different media; an image in base64 is longer than its tokens."""
    digest = f"{hash(_dumped(media)):020}"
    return digest * (_MEDIA_TOKENS * _TOKEN_BYTES // len(digest))


def _dumped(value: object) -> str:
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:  # it could just be parsed; what becomes of it is the engine's business
        return ""


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
