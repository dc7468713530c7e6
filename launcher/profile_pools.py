"""Decision: what is written of a profile's pools, completed by the profile itself; and what is wrong with it."""

from collections.abc import Iterator

from launcher.profile import Pool, Profile
from launcher.yaml_document import KeyPath, Value
from proxy.pools import MAIN, rule_faults

Data = dict[str, Value]
_SOURCES = ("id", "path", "bundled")
_OF_THE_SOURCE = (*_SOURCES, "revision")
_NAMES = ("served_name", "aliases")


def completed(written: Value, main: Data) -> Value:
    """Each pool with all that it has; what is no mapping stays, for whoever judges it."""
    if not isinstance(written, dict):
        return written
    return {name: _pool(over, main) if isinstance(over, dict) else over for name, over in written.items()}


def _pool(over: Data, main: Data) -> Data:
    base: Data = {"quantization": {}, **{key: main[key] for key in Pool.model_fields if key in main}}
    model, own = base.get("model"), over.get("model")
    if isinstance(model, dict) and isinstance(own, dict) and any(own.get(key) is not None for key in _SOURCES):
        base["model"] = {key: value for key, value in model.items() if key not in _OF_THE_SOURCE}
    return merged(base, over)


def _unreported(profile: Profile) -> Iterator[tuple[KeyPath, str]]:
    """Rules go by an acceptance that no engine would tell."""
    pools = [(pool, role) for pool in profile.by_pool().values() for role, _ in pool.roles.items()]
    found = (pool.speculation_of(role) for pool, role in pools)
    if any(each.report_acceptance for each in found if each is not None):
        return
    for number, rule in enumerate(profile.proxy.pools.rules):
        if rule.when.expected_acceptance is not None:
            yield (
                ("proxy", "pools", "rules", number, "when", "expected_acceptance"),
                "no engine tells how many draft tokens were accepted: set speculation.report_acceptance: true",
            )


def merged(below: Data, above: Data) -> Data:
    """Mappings merge key by key; anything else of ``above`` replaces what is ``below``."""
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        found[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return found


def faults(profile: Profile, written: Value) -> Iterator[tuple[KeyPath, str]]:
    """Of pools and of the rules that name them, in a profile that is well-formed otherwise: key and reason."""
    for name, over in written.items() if isinstance(written, dict) else ():
        if name == MAIN:
            yield ("pools", name), f"{MAIN} is the profile itself: write it beside `pools`, or choose another name"
        model = over.get("model") if isinstance(over, dict) else None
        for key in _NAMES if isinstance(model, dict) else ():
            if key in model:  # type: ignore[operator]
                yield ("pools", name, "model", key), f"all pools serve the same names: remove it, or set model.{key}"
    yield from _unreported(profile)
    for where, fault in rule_faults(profile.proxy.pools.rules, profile.pools):
        yield ("proxy", "pools", "rules", *where), fault
