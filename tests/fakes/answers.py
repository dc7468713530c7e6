"""What vLLM 0.32 answers whatever the completion: errors, events, models, metrics, KV parameters, ids."""

import json
import zlib
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from uuid import uuid4

MAX_MODEL_LEN = 2048
CREATED = 1_795_000_000
SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")


class Kind(Enum):
    """The routes that generate."""

    TEXT = "/v1/completions"
    CHAT = "/v1/chat/completions"
    RESPONSE = "/v1/responses"
    MESSAGE = "/v1/messages"


def error(message: str, kind: str = "BadRequestError", param: str | None = None, code: int = 400) -> dict:
    """An error's body."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def event(document: dict) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"


def named_event(name: str, document: dict) -> bytes:
    """One server-sent event with a name."""
    return f"event: {name}\n".encode() + event(document)


def models(model: str, root: str | None = None, adapters: dict[str, str] | None = None) -> dict:
    """``/v1/models``.

    ``root`` is what the engine was given as the model, if that is not the served name; ``adapters``: folders by name.
    """
    permission = {
        "id": "modelperm-1",
        "object": "model_permission",
        "created": CREATED,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    entry = {
        "id": model,
        "object": "model",
        "created": CREATED,
        "owned_by": "vllm",
        "root": root or model,
        "parent": None,
        "max_model_len": MAX_MODEL_LEN,
        "permission": [permission],
    }
    loras = [
        entry | {"id": name, "root": folder, "parent": model, "max_model_len": None}
        for name, folder in (adapters or {}).items()
    ]
    return {"object": "list", "data": [entry, *loras]}


def tokenized(body: dict) -> dict:
    """``/tokenize`` of a prompt: a number for each word."""
    tokens = [zlib.crc32(word.encode()) % MAX_MODEL_LEN for word in body["prompt"].split()]
    return {"count": len(tokens), "max_model_len": MAX_MODEL_LEN, "tokens": tokens, "token_strs": None}


def kv_params(engine_id: str, request_id: str, port: int, prompt_tokens: int, generated: int = 1) -> dict:
    """Where prefill's KV lies. The cached tokens are known only when the first token was the last."""
    cached = {"remote_prefill_cached_tokens": 0} if generated == 1 else {}
    return {
        "do_remote_prefill": True,
        "do_remote_decode": False,
        "remote_block_ids": [[1]],
        "remote_engine_id": engine_id,
        "remote_request_id": request_id,
        "remote_host": "localhost",
        "remote_port": port,
        "tp_size": 1,
        "dcp_size": 1,
        "pp_size": 1,
        "remote_num_tokens": prompt_tokens + generated - 1,
        "remote_blocks_expiry_time": None,
        "transfer_mode": "pull",
        **cached,
    }


def answer_id(kind: Kind, request_id: str | None, own: str | None = None) -> str:
    """The id in the body, made from the request's ``X-Request-Id``; a response's is that of the request's body."""
    if kind is Kind.RESPONSE:
        return own or f"resp_{uuid4().hex[:16]}"
    given = request_id or uuid4().hex[:16]
    return f"cmpl-{given}" if kind is Kind.TEXT else f"chatcmpl-{given}"


def engine_request_id(kind: Kind, answer: str) -> str:
    """The id under which the engine itself knows the request, without the random part that it adds."""
    return answer + {Kind.TEXT: "-0", Kind.RESPONSE: "_0"}.get(kind, "")


CACHE_CONFIG = {
    "_block_size_resolved": "True",
    "block_size": "128",
    "cache_dtype": "auto",
    "cache_hit_alignment_tokens": "None",
    "effective_attention_block_size": "128",
    "enable_mamba_shared_prefix_checkpoint": "False",
    "enable_prefix_caching": "True",
    "engine": "0",
    "gpu_memory_utilization": "0.92",
    "hash_block_size": "None",
    "is_attention_free": "False",
    "kv_cache_dtype_skip_layers": "[]",
    "kv_cache_layout": "None",
    "kv_cache_max_concurrency": "32.0",
    "kv_cache_memory_bytes": "67108864",
    "kv_cache_size_tokens": "32768",
    "kv_offloading_backend": "native",
    "kv_offloading_size": "None",
    "kv_sharing_fast_prefill": "False",
    "mamba_block_size": "None",
    "mamba_cache_dtype": "auto",
    "mamba_cache_mode": "none",
    "mamba_page_size_padded": "None",
    "mamba_ssm_cache_dtype": "float32",
    "num_cpu_blocks": "None",
    "num_gpu_blocks": "256",
    "num_gpu_blocks_override": "None",
    "prefix_cache_retention_interval": "0",
    "prefix_caching_hash_algo": "sha256",
    "prefix_match_unit": "None",
    "replayssm_buffer_len": "16",
    "skip_page_size_padded": "None",
    "sliding_window": "None",
    "swa_bounded_replay": "True",
    "use_kda_recoverssm": "False",
    "use_replayssm": "False",
    "user_specified_block_size": "False",
}
"""The labels of ``vllm:cache_config_info`` on a CPU."""


def metrics(
    model: str,
    by_source: dict[str, int],
    running: int,
    *,
    started: float,
    generated: int,
    cache_config: Mapping[str, str] = MappingProxyType({}),
    transfers: tuple[int, float] = (0, 0.0),
    usage: float | None = 0.0,
    counts: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """``/metrics``, the part that matters for prefill and decode.

    ``transfers``: bytes and seconds of all. ``cache_config`` replaces labels.
    ``usage`` is that of the KV cache; ``None`` leaves it out.
    """
    label = f'engine="0",model_name="{model}"'
    cache = ",".join(f'{name}="{value}"' for name, value in {**CACHE_CONFIG, **cache_config}.items())
    gauges = {
        "process_start_time_seconds": started,
        f"vllm:num_requests_running{{{label}}}": running,
        f"vllm:num_requests_waiting{{{label}}}": 0,
        **({} if usage is None else {f"vllm:kv_cache_usage_perc{{{label}}}": usage}),
        f"vllm:cache_config_info{{{cache}}}": 1,
    }
    counters = {
        f"vllm:prompt_tokens_total{{{label}}}": sum(by_source.values()),
        f"vllm:generation_tokens_total{{{label}}}": generated,
        f"vllm:num_preemptions_total{{{label}}}": 0,
        f"vllm:nixl_num_failed_transfers_total{{{label}}}": 0,
        f"vllm:nixl_num_kv_expired_reqs_total{{{label}}}": 0,
        f"vllm:nixl_num_notifications_after_expiry_total{{{label}}}": 0,
    }
    counters |= {f"vllm:{name}_total{{{label}}}": count for name, count in counts.items()}
    counters |= {
        f'vllm:prompt_tokens_by_source_total{{{label},source="{source}"}}': by_source[source] for source in SOURCES
    }
    lines: list[str] = []
    for kind, samples in (("gauge", gauges), ("counter", counters)):
        for name, value in samples.items():
            family = f"# TYPE {name.partition('{')[0]} {kind}"
            lines += [family] if family not in lines else []
            lines.append(f"{name} {float(value)}")
    moved_bytes, moved_seconds = transfers
    for name, total in (("nixl_bytes_transferred", moved_bytes), ("nixl_xfer_time_seconds", moved_seconds)):
        lines += [f"# TYPE vllm:{name} histogram", f"vllm:{name}_sum{{{label}}} {float(total)}"]
    return "\n".join(lines) + "\n"
