"""What profiles and the launcher's own environment tell engines by variables."""

import difflib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from launcher.command_line import options_of
from launcher.engine_args import hub_ids
from launcher.errors import SecretError
from launcher.inventory import Checkpoint
from launcher.local import secrets
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from launcher.profile import Device
from launcher.weights import folder_of
from proxy.topology import Role

_SECRET_NAME = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|API_KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS)$", re.I)
_SECRET_TEXT = re.compile(r"^(hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{16}|ghp_[A-Za-z0-9]{30,})$")
_ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
_OWN_POOLS = ("enable-cumem-allocator", "enable-sleep-mode")
"""Options with which vLLM keeps the KV cache in a pool that does not move."""
_SECRET_OPTIONS = frozenset({"api-key", "hf-token"})


@cache
def known_variables() -> frozenset[str]:
    """All ``VLLM_*`` that vLLM 0.32 reads; vllm/envs.py."""
    return frozenset((Path(__file__).parent / "engine_variables.txt").read_text("utf-8").split())


def _given(case: Case) -> Iterator[tuple[str, str, str]]:
    """Key path, name and text of each variable of the profile."""
    for name, text in case.profile.env.items():
        yield f"env.{name}", name, text
    for role, settings in case.profile.roles.items():
        for name, text in settings.env.items():
            yield f"roles.{role}.env.{name}", name, text


def _unknown(case: Case) -> Iterator[Fault]:
    """Variables of vLLM that it does not know."""
    for key, name, _ in _given(case):
        if name.startswith("VLLM_") and name not in known_variables():
            near = difflib.get_close_matches(name, known_variables(), n=1)
            meant = f"did you mean {near[0]}? Correct it" if near else "remove it"
            what = f"vLLM 0.32 knows no variable {name}"
            yield Fault(key, what, meant, "it would be ignored with a warning in the log", severity=Severity.WARNING)


def _port(case: Case) -> Iterator[Fault]:
    """``VLLM_PORT`` is vLLM's port for talking to itself, and a trap: a cluster's service named vllm sets it, too."""
    ports = {str(engine.port) for engine in case.plan.engines}
    given = [(key, text, "") for key, name, text in _given(case) if name == "VLLM_PORT"]
    if not given and "VLLM_PORT" in case.environ:
        given = [("env", case.environ["VLLM_PORT"], " in the launcher's own environment")]
    for key, text, where in given:
        if not text.isdigit():
            yield Fault(
                key, f"VLLM_PORT is {text!r}{where}, no number", "remove it there: Duet gives each engine its ports"
            )
        elif text in ports:
            yield Fault(
                key,
                f"VLLM_PORT {text}{where} is the port of an engine's API",
                "remove it; ports.engine says where the APIs' ports begin",
                "vLLM would use it for its own processes, and the API could not listen",
            )


def _secrets(case: Case) -> Iterator[Fault]:
    """Secrets written as text."""
    for key, name, text in _given(case):
        if text and (_SECRET_NAME.search(name) or _SECRET_TEXT.match(text)):
            yield _in_plain_text(
                key, f"a secret stands in the profile as text ({name})", f"secrets.{name}: {{env: {name}}}"
            )
    places = {"engine_args": case.profile.engine_args}
    places |= {f"roles.{role}.engine_args": settings.engine_args for role, settings in case.profile.roles.items()}
    for place, given in places.items():
        for option in given:
            if option.replace("_", "-") in _SECRET_OPTIONS:
                variable = "VLLM_API_KEY" if option.replace("_", "-") == "api-key" else "HF_TOKEN"
                what = (
                    f"a secret stands on the engines' command line ({option}), which every user of the machine can read"
                )
                yield _in_plain_text(f"{place}.{option}", what, f"secrets.{variable}: {{env: {variable}}}")


def _in_plain_text(key: str, what: str, instead: str) -> Fault:
    why = "whoever reads the profile, the plan or a list of processes has it"
    return Fault(key, what, f"remove it and write {instead}", why, severity=Severity.WARNING)


def _secrets_there(case: Case) -> Iterator[Fault]:
    """Secrets that cannot be read where they are said to be."""
    for engine in case.plan.engines:
        for name, reference in engine.secrets.items():
            try:
                secrets.check([(engine.name, {name: reference})], case.environ)
            except SecretError as exc:
                is_own = name in getattr(case.profile.roles, engine.role.value).secrets
                key = f"roles.{engine.role}.secrets.{name}" if is_own else f"secrets.{name}"
                what, _, fix = exc.messages[0].removesuffix(f" (for {engine.name})").rpartition(": ")
                yield Fault(key, what, fix, "no engine is started without its secrets")


def _given_twice(case: Case) -> Iterator[Fault]:
    """A name that is a variable and a secret."""
    for role, settings in case.profile.roles.items():
        variables = {**case.profile.env, **settings.env}
        for name in {**case.profile.secrets, **settings.secrets}:
            if name in variables:
                key = f"roles.{role}.env.{name}" if name in settings.env else f"env.{name}"
                yield Fault(key, f"{name} is a variable and a secret", "keep one of env and secrets")


def _allocator(case: Case) -> Iterator[Fault]:
    """An allocator that may move the KV cache while a connector moves it."""
    for engine in case.plan.engines:
        text = engine.env.get(_ALLOCATOR, case.environ.get(_ALLOCATOR, ""))
        options = options_of(engine.argv)
        if (
            engine.role is not Role.AGGREGATED
            and "expandable_segments:True" in text
            and not any(options.get(option) == "true" for option in _OWN_POOLS)
        ):
            key = f"roles.{engine.role}.env.{_ALLOCATOR}"
            yield Fault(
                f"env.{_ALLOCATOR}" if _ALLOCATOR in case.profile.env else key if _ALLOCATOR in engine.env else "env",
                f"{_ALLOCATOR} is {text}" + ("" if _ALLOCATOR in engine.env else " in the launcher's own environment"),
                "remove expandable_segments:True, or set engine_args.enable-cumem-allocator",
                "vLLM refuses it together with a KV connector: the KV cache could move in memory",
            )


def _offline(case: Case) -> Iterator[Fault]:
    """What has to come from the hub when engines must not ask it."""
    given = {name: text for _, name, text in _given(case)}
    if {**case.environ, **given}.get("HF_HUB_OFFLINE", "").upper() not in {"1", "ON", "YES", "TRUE"}:
        return
    for key, hub_id in hub_ids(case.profile):
        revision = case.profile.model.revision if key == "model.id" else None
        if folder_of(Checkpoint(hub_id, revision), {**case.environ, **given}) is None:
            yield Fault(
                key,
                f"{hub_id} is not on this machine, and HF_HUB_OFFLINE keeps engines from fetching it",
                f"fetch it while online (hf download {hub_id}), or name its folder",
            )


def _kept_alive(case: Case) -> Iterator[Fault]:
    """Engines that close idle connections too soon."""
    for key, name, text in _given(case):
        if name == "VLLM_HTTP_TIMEOUT_KEEP_ALIVE" and text.isdigit() and int(text) < 5:
            what = f"engines would close idle connections after {text} s"
            why = "requests meet connections that are just being closed, and are sent a second time"
            yield Fault(key, what, "remove it, or give 5 or more", why, severity=Severity.WARNING)


def _kv_cache_space(case: Case) -> Iterator[Fault]:
    """On a CPU, vLLM's own size of the KV cache goes before the one of the command line."""
    for key, name, text in _given(case):
        if name == "VLLM_CPU_KVCACHE_SPACE" and case.profile.device is Device.CPU:
            what = f"VLLM_CPU_KVCACHE_SPACE {text} goes before kv_cache_memory"
            yield Fault(key, what, "remove it and set roles.*.kv_cache_memory", "one of the two would do nothing")


RULES = (
    Rule("environment/unknown-variable", Layer.STATIC, "vLLM 0.32: vllm/envs.py", _unknown),
    Rule("environment/vllm-port", Layer.STATIC, "vLLM: reads VLLM_PORT as a number, for its own processes", _port),
    Rule("environment/secret-as-text", Layer.STATIC, "common practice", _secrets),
    Rule("environment/secret-there", Layer.HOST, "this product: engines get them when they start", _secrets_there),
    Rule("environment/given-twice", Layer.STATIC, "this product: one fact, one place", _given_twice),
    Rule("environment/expandable-segments", Layer.STATIC, "vLLM 0.32: config/vllm.py", _allocator),
    Rule("environment/offline", Layer.STATIC, "huggingface_hub: HF_HUB_OFFLINE", _offline),
    Rule("environment/keep-alive", Layer.STATIC, "uvicorn closes idle connections after this time", _kept_alive),
    Rule(
        "environment/kv-cache-space",
        Layer.STATIC,
        "vLLM 0.32: VLLM_CPU_KVCACHE_SPACE overrides the option",
        _kv_cache_space,
    ),
)
