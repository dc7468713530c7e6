"""Would the plan's prefill and decode engines be alike enough to exchange KV caches?"""

from collections.abc import Iterator
from ipaddress import ip_address

from launcher.fingerprint import fingerprints
from launcher.inventory import Inventory
from launcher.plan import Plan
from proxy.agreement import Fact, Identity, differences
from proxy.topology import Role

_SIDE_CHANNEL = "VLLM_NIXL_SIDE_CHANNEL_HOST"


def findings(plan: Plan, inventory: Inventory) -> Iterator[str]:
    """What differs by the profile's own settings; and addresses at which nobody from elsewhere gets a KV cache."""
    prefills = [engine for engine in plan.engines if engine.role is Role.PREFILL]
    decodes = [engine for engine in plan.engines if engine.role is Role.DECODE]
    if not prefills or not decodes:
        return
    known = fingerprints(plan.engines, inventory)
    prefill, decode = (Identity(engine.name, known[engine.name]) for engine in (prefills[0], decodes[0]))
    for difference in differences(prefill, decode):  # the instances of a role are planned alike
        yield (
            f"prefill and decode cannot exchange KV caches: {difference}: give it to both roles or to none "
            "(roles.prefill and roles.decode: engine_args, env)"
        )
    for each in prefills:
        elsewhere = sorted({decode.host for decode in decodes} - {each.host})
        uses_side_channel = "Nixl" in known[each.name].get(Fact.CONNECTOR, "")
        if elsewhere and uses_side_channel and _is_loopback(address := each.env.get(_SIDE_CHANNEL, "localhost")):
            yield (
                f"{each.name} tells decode to fetch KV caches from {address}, but decode runs on another host "
                f"({', '.join(elsewhere)}): set roles.prefill.env.{_SIDE_CHANNEL} to an address of {each.host}"
            )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
