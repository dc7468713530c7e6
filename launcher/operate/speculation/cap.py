"""Decision: an engine's speculative configuration with at most so many draft tokens.

The cap goes over all of the engine's schedule, so K by batch size stays as it was tuned, only lower.
"""

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from launcher.command_line import drafts_with_kv, options_of, speculation_of
from proxy.topology import Role

Config = Mapping[str, JsonValue]
_OPTION = "--speculative-config"
_REPORT = "--per-request-spec-decode-metrics"
"""vLLM does not start with it where nothing speculates."""
_K = "num_speculative_tokens"
_OF_SUFFIX = 24
"""vLLM's own K for the method that counts for itself, as deep as its tree."""
_SCHEDULE = "num_speculative_tokens_per_batch_size"


def k_of(argv: Sequence[str]) -> int:
    """The most draft tokens by step, by an engine's command line; 0 for none."""
    return _k(speculation_of(options_of(argv)))


def argv_with(argv: Sequence[str], cap: int, role: Role) -> tuple[str, ...]:
    """An engine's command line as the profile has it, with at most ``cap`` draft tokens by step."""
    own = speculation_of(options_of(argv))
    config = capped(own, cap, role)
    if config == own:
        return tuple(argv)
    rest = _without(argv, _OPTION)
    return (*rest, _OPTION, json.dumps(dict(config))) if config else _without(rest, _REPORT)


def _k(config: Config) -> int:
    k = config.get(_K)
    most = k if isinstance(k, int) else _OF_SUFFIX if config.get("method") == "suffix" else 0
    schedule = config.get(_SCHEDULE)
    ks = [entry[2] for entry in schedule if isinstance(entry, list)] if isinstance(schedule, list) else [most]
    return min(most, max((each for each in ks if isinstance(each, int)), default=0))


def capped(config: Config, cap: int, role: Role) -> Config:
    """``config`` with at most ``cap`` draft tokens; empty where nothing of it is needed for none.

    A draft whose layers are in the KV cache stays loaded at decode: prefill has these layers, and both must agree.
    """
    if cap >= _k(config):
        return config
    if cap > 0:
        limited = dict(config) | {_K: cap}
        if isinstance(schedule := config.get(_SCHEDULE), list):
            limited[_SCHEDULE] = [_limited(entry, cap) for entry in schedule]
        return limited
    if role is Role.DECODE and drafts_with_kv(config):
        return dict(config) | {_SCHEDULE: [[1, 1, 0]]}  # the engine carries the last range on to larger batches
    return {}


def _without(argv: Sequence[str], option: str) -> tuple[str, ...]:
    """A command line without an option and its value."""
    at = argv.index(option) if option in argv else len(argv)
    return (*argv[:at], *argv[at + 2 :])


def _limited(entry: JsonValue, cap: int) -> JsonValue:
    if isinstance(entry, list) and len(entry) == 3 and isinstance(entry[2], int):
        return [*entry[:2], min(entry[2], cap)]
    return entry
