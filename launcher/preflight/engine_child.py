"""Runs vLLM's own parser and configuration builder over command lines, in a process of its own.

A program without imports from Duet: it is run by the Python that runs engines. Reads one JSON array of instances from
standard input (``name``, ``options``, ``env``, ``builds``) and prints one JSON object per instance: ``name``, ``error``
with the ``step`` that failed (``parse``, ``build``), or what the engine settled (``dtype``, ``block_size``...), and the
hash by which prefill and decode recognise each other. vLLM logs to standard error and changes the environment, hence
the process.
"""

import contextlib
import ctypes
import difflib
import io
import json
import os
import re
import signal
import sys
from typing import Any

_DIE_WITH_PARENT = 1
"""prctl(2): PR_SET_PDEATHSIG."""


def main() -> None:
    """Judge all instances, one after the other; ends with whoever asked."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    instances = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever vLLM prints is no answer
    mine = dict(os.environ)
    for instance in instances:
        os.environ.clear()  # of what the one before was given, and of what vLLM made of it
        os.environ.update(mine)
        print(json.dumps({"name": instance["name"], **judge(instance)}), file=answers, flush=True)


def judge(instance: dict[str, Any]) -> dict[str, Any]:
    """What vLLM makes of one instance."""
    os.environ.update(instance["env"])
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.usage.usage_lib import UsageContext
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = make_arg_parser(FlexibleArgumentParser())
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            arguments = parser.parse_args(instance["options"])
        validate_parsed_serve_args(arguments)
    except SystemExit:
        return {"step": "parse", "error": parse_error(told.getvalue(), [*parser._option_string_actions])}
    except Exception as exc:
        return {"step": "parse", "error": text_of(exc)}
    if not instance["builds"]:
        return {}
    try:
        config = AsyncEngineArgs.from_cli_args(arguments).create_engine_config(UsageContext.OPENAI_API_SERVER)
    except Exception as exc:
        return {"step": "build", "error": text_of(exc)}
    return settled(config)


def settled(config: Any) -> dict[str, Any]:
    """What the engine chose where the command line is silent."""
    found = {
        "dtype": str(config.model_config.dtype),
        "quantization": config.model_config.quantization,
        "max_model_len": config.model_config.max_model_len,
        "block_size": config.cache_config.block_size,
        "kv_cache_dtype": config.cache_config.cache_dtype,
        "max_num_seqs": config.scheduler_config.max_num_seqs,
        "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
    }
    transfer = config.kv_transfer_config
    if transfer is not None and "Nixl" in (transfer.kv_connector or ""):
        from vllm.distributed.kv_transfer.kv_connector.v1.nixl.metadata import compute_nixl_compatibility_hash

        mode = "push" if "Push" in transfer.kv_connector else "pull"
        found["compatibility_hash"] = compute_nixl_compatibility_hash(config, "of this check", mode)
    return found


def parse_error(told: str, known: list[str]) -> str:
    """The parser's last word, and for an option that does not exist the one that was meant."""
    message = " ".join((told.rpartition("error: ")[2] or told).split())
    hints = [
        f"{option}: did you mean {near[0]}?"
        for option in re.findall(r"--[\w.-]+", message.partition("unrecognized arguments:")[2])
        if (near := difflib.get_close_matches(option, known, n=1))
    ]
    return "; ".join([message, *hints])


def text_of(exc: Exception) -> str:
    """The reasons themselves; pydantic adds the whole configuration and an address to them."""
    errors = getattr(exc, "errors", None)
    if callable(errors):
        with contextlib.suppress(Exception):
            texts = [
                ": ".join([*([".".join(map(str, each["loc"]))] if each["loc"] else []), each["msg"]])
                for each in errors()
            ]
            return " ".join("; ".join(texts).replace("Value error, ", "").split())
    return " ".join(str(exc).split()) or type(exc).__name__


if __name__ == "__main__":
    main()
