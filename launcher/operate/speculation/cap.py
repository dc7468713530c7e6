"""Decision: an engine's speculative configuration with at most so many draft tokens.

The cap goes over all of the engine's schedule, so K by batch size stays as it was tuned, only lower.
"""

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from launcher.command_line import drafts_with_kv, options_of, speculation_of
from launcher.plan import EngineInstance
from proxy.topology import Role

Config = Mapping[str, JsonValue]
_OPTION = "--speculative-config"
_K = "num_speculative_tokens"
_OF_SUFFIX = 24
"""vLLM's own K for the method that counts for itself, as deep as its tree."""
_SCHEDULE = "num_speculative_tokens_per_batch_size"


def config_of(engine: EngineInstance) -> Config:
    """Its speculative configuration; empty for none."""
    return speculation_of(options_of(engine.argv))


def k_of(config: Config) -> int:
    """The most draft tokens by step; 0 for none."""
    k = config.get(_K)
    most = k if isinstance(k, int) else _OF_SUFFIX if config.get("method") == "suffix" else 0
    schedule = config.get(_SCHEDULE)
    ks = [entry[2] for entry in schedule if isinstance(entry, list)] if isinstance(schedule, list) else [most]
    return min(most, max((each for each in ks if isinstance(each, int)), default=0))


def capped(config: Config, cap: int, role: Role) -> Config:
    """``config`` with at most ``cap`` draft tokens; empty where nothing of it is needed for none.

    A draft whose layers are in the KV cache stays loaded at decode: prefill has these layers, and both must agree.
    """
    if cap >= k_of(config):
        return config
    if cap > 0:
        limited = dict(config) | {_K: cap}
        if isinstance(schedule := config.get(_SCHEDULE), list):
            limited[_SCHEDULE] = [_limited(entry, cap) for entry in schedule]
        return limited
    if role is Role.DECODE and drafts_with_kv(config):
        return dict(config) | {_SCHEDULE: [[1, 1, 0]]}  # the engine carries the last range on to larger batches
    return {}


def argv_with(argv: Sequence[str], config: Config) -> tuple[str, ...]:
    """A command line with this speculative configuration in place of its own."""
    rest = list(argv)
    if _OPTION in rest:
        at = rest.index(_OPTION)
        del rest[at : at + 2]
    return (*rest, *((_OPTION, json.dumps(dict(config))) if config else ()))


def _limited(entry: JsonValue, cap: int) -> JsonValue:
    if isinstance(entry, list) and len(entry) == 3 and isinstance(entry[2], int):
        return [*entry[:2], min(entry[2], cap)]
    return entry
