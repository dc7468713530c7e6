"""The engine's own judgement: vLLM parses every command line and builds its configuration, before anything starts.

It finds what no table can know: options that do not exist, values that a version refuses, models that do not fit their
settings. It takes seconds, most of them for importing vLLM; a plan that passed is not asked about again.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from launcher.engine_args import ENGINE_MODULE, PROFILE_KEYS
from launcher.inventory import Checkpoint
from launcher.plan import EngineInstance
from launcher.preflight import engine_child
from launcher.preflight.finding import Case, Fault, Layer, Rule, key_in_pool
from launcher.profile import Device
from launcher.weights import folder_of
from proxy.topology import Role

_LONGEST = 180.0
"""Seconds; vLLM is imported in ten on an idle machine."""
_CHILD = Path(engine_child.__file__)


def _parser(_: Case) -> tuple[Fault, ...]:
    """Options and values that vLLM's command line does not take."""
    return ()


def _configuration(_: Case) -> tuple[Fault, ...]:
    """Settings that vLLM refuses for this model, or together."""
    return ()


def _hash(_: Case) -> tuple[Fault, ...]:
    """Prefill and decode engines that NIXL's handshake would keep apart."""
    return ()


PARSER = Rule("engine/command-line", Layer.ENGINE, "vLLM's own argument parser", _parser)
CONFIGURATION = Rule("engine/configuration", Layer.ENGINE, "vLLM's own configuration builder", _configuration)
HASH = Rule("engine/compatibility-hash", Layer.ENGINE, "the hash by which NIXL's handshake decides", _hash)
RULES = (PARSER, CONFIGURATION, HASH)
"""Named like all rules; one run of the engine's own code answers them together."""


@dataclass(frozen=True, slots=True)
class NotAsked:
    """Why the engine did not judge, or not all of it."""

    reason: str


def judge(case: Case, cache: Path | None = None) -> Iterator[tuple[Rule, Fault] | NotAsked]:
    """What the engine finds. With ``cache`` a plan that it had no objections to is not asked about again."""
    if reason := _cannot_ask(case):
        yield NotAsked(reason)
        return
    cases = case.once(Case.by_pool)
    builds = {pool: _cannot_build(each) for pool, each in cases.items()}
    question = [_question(engine, builds[engine.pool] is None) for engine in case.plan.engines]
    passed = None if cache is None else cache / "preflight" / _digest(question, case)
    if passed is not None and os.path.exists(passed):
        return
    try:
        answers = _ask(question, case)
    except (OSError, ValueError, subprocess.SubprocessError) as exc:
        yield NotAsked(f"vLLM could not be asked: {exc}")
        return
    found = [
        (rule, replace(fault, key=key_in_pool(pool, fault.key)))
        for pool, each in cases.items()
        for rule, fault in _faults(each, answers)
    ]
    yield from found
    reasons = dict.fromkeys(reason for reason in builds.values() if reason is not None)
    yield from map(NotAsked, reasons)
    if not reasons and not found and passed is not None:
        with suppress(OSError):  # then it is asked again next time
            passed.parent.mkdir(parents=True, exist_ok=True)
            passed.touch()


def _cannot_ask(case: Case) -> str | None:
    engine = case.plan.engines[0]
    if engine.argv[1 : 1 + len(ENGINE_MODULE)] != ENGINE_MODULE:
        return "engine_command starts another program than vLLM of the launcher's own Python"
    if find_spec("vllm") is None:
        return "vLLM is not installed here: its own parser and configuration were not asked"
    return None


def _cannot_build(case: Case) -> str | None:
    """Why only the command line can be judged."""
    if case.plan.device is Device.CUDA and not case.inventory.gpus:
        return "no GPU here: vLLM parsed the command lines, but did not build its configuration"
    if folder_of(Checkpoint(case.plan.model, case.profile.model.revision), case.environ) is None:
        return f"{case.plan.model} is not on this machine: vLLM parsed the command lines, and did not see the model"
    return None


def _question(engine: EngineInstance, builds: bool) -> dict[str, Any]:
    options = engine.argv[1 + len(ENGINE_MODULE) :]
    return {"name": engine.name, "options": options, "env": dict(engine.env), "builds": builds}


def _digest(question: list[dict[str, Any]], case: Case) -> str:
    """Of all that the answer depends on: the command lines, vLLM's version, this code, the models' descriptions."""
    whole = blake2b(digest_size=16)
    whole.update(json.dumps([question, case.inventory.engine_version]).encode())
    whole.update(_CHILD.read_bytes())
    for checkpoint, digest in sorted(case.inventory.weights.items(), key=str):
        whole.update(f"{checkpoint}{digest}".encode())
    return whole.hexdigest()


def _ask(question: list[dict[str, Any]], case: Case) -> list[dict[str, Any]]:
    offline = {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    environ = {name: value for name, value in case.environ.items() if name != "VLLM_PORT"}
    done = subprocess.run(
        [case.inventory.python, "-P", str(_CHILD)],
        input=json.dumps(question).encode(),
        capture_output=True,
        env={**environ, **offline},
        timeout=_LONGEST,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(question):
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ValueError(f"it ended with {done.returncode} ({last[:200]})")
    return answers


def _faults(case: Case, answers: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Rule, Fault]]:
    engines = {engine.name: engine for engine in case.plan.engines}
    answers = [answer for answer in answers if answer["name"] in engines]
    for answer in answers:
        if "error" in answer:
            engine, rule = engines[answer["name"]], PARSER if answer["step"] == "parse" else CONFIGURATION
            key = _key_of(str(answer["error"]), engine.role, case)
            what = f"vLLM {case.inventory.engine_version} refuses it for {engine.role}: {answer['error']}"
            yield rule, Fault(key, what, "correct it as vLLM says; `launcher plan` shows the whole command line")
    hashes = {
        engines[each["name"]].role: str(each["compatibility_hash"]) for each in answers if "compatibility_hash" in each
    }
    prefill, decode = hashes.get(Role.PREFILL), hashes.get(Role.DECODE)
    if prefill != decode and prefill is not None and decode is not None:
        yield (
            HASH,
            Fault(
                "roles",
                f"prefill's compatibility hash is {prefill[:12]}, decode's {decode[:12]}",
                "give both roles the same model, dtype, KV cache, attention backend and draft",
                why="decode would refuse every KV cache of prefill at the first request",
                values={"roles.prefill": prefill, "roles.decode": decode},
            ),
        )


def _key_of(error: str, role: Role, case: Case) -> str:
    """The profile's key of the first option or setting that vLLM names."""
    settings = getattr(case.profile.roles, role.value)
    for place, given in (
        (f"roles.{role}.engine_args", settings.engine_args),
        ("engine_args", case.profile.engine_args),
    ):
        for key in given:
            if key.replace("_", "-") in error or key.replace("-", "_") in error:
                return f"{place}.{key}"
    for option, key in PROFILE_KEYS.items():
        if f"--{option}" in error or option.replace("-", "_") in error:
            return key.partition(" or ")[0].replace("roles.*", f"roles.{role}")
    return f"roles.{role}"
