"""Would the plan's prefill and decode engines be alike enough to exchange KV caches?"""

from collections.abc import Iterator
from ipaddress import ip_address

from launcher.fingerprint import fingerprints
from launcher.plan import EngineInstance
from launcher.preflight.finding import Case, Fault, Layer, Rule
from proxy.agreement import Fact, Identity, differences
from proxy.topology import Role

_SIDE_CHANNEL = "VLLM_NIXL_SIDE_CHANNEL_HOST"


def _differences(case: Case) -> Iterator[Fault]:
    """What differs by the profile's own settings."""
    prefills, decodes = _of(case, Role.PREFILL), _of(case, Role.DECODE)
    if not prefills or not decodes:
        return
    known = fingerprints(case.plan.engines, case.inventory)
    prefill, decode = (Identity(engine.name, known[engine.name]) for engine in (prefills[0], decodes[0]))
    for difference in differences(prefill, decode):  # the instances of a role are planned alike
        yield Fault(
            "roles",
            f"prefill and decode cannot exchange KV caches: {difference}",
            "give it to both roles or to none (roles.prefill and roles.decode: their own keys, engine_args, env)",
            why="decode would compute every prompt again, or answer from a KV cache it misreads",
        )


def _loopback(case: Case) -> Iterator[Fault]:
    """Addresses at which nobody from elsewhere gets a KV cache."""
    known = fingerprints(case.plan.engines, case.inventory)
    for each in _of(case, Role.PREFILL):
        elsewhere = sorted({decode.host for decode in _of(case, Role.DECODE)} - {each.host})
        uses_side_channel = "Nixl" in known[each.name].get(Fact.CONNECTOR, "")
        if elsewhere and uses_side_channel and _is_loopback(address := each.env.get(_SIDE_CHANNEL, "localhost")):
            yield Fault(
                f"roles.prefill.env.{_SIDE_CHANNEL}",
                f"{each.name} tells decode to fetch KV caches from {address}, but decode runs on another host "
                f"({', '.join(elsewhere)})",
                f"set roles.prefill.env.{_SIDE_CHANNEL} to an address of {each.host}",
            )


def _of(case: Case, role: Role) -> list[EngineInstance]:
    return [engine for engine in case.plan.engines if engine.role is role]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


RULES = (
    Rule("agreement/prefill-decode", Layer.STATIC, "vLLM's compatibility hash, and what it leaves out", _differences),
    Rule("agreement/loopback-side-channel", Layer.STATIC, "vLLM: prefill tells decode the address it binds", _loopback),
)
