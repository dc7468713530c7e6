"""Decision: which methods a profile can try, and how a setting is put into it."""

import json
from collections.abc import Iterable, Mapping

from launcher.profile import Profile, SpeculationMethod
from launcher.speculation.setting import Setting
from launcher.yaml_document import Value
from proxy.topology import Role

Written = Mapping[str, Value]
"""Of the key ``speculation`` in a profile."""


_LOOKED_UP: Written = {"prompt_lookup_max": 5, "prompt_lookup_min": 2}
"""vLLM's own default looks for five tokens only, and so seldom drafts where a text has just begun to repeat."""


def generating(profile: Profile) -> Role:
    """The role that speculates."""
    return Role.AGGREGATED if profile.roles.aggregated is not None else Role.DECODE


def engines(profile: Profile) -> tuple[int, int | None]:
    """How many generate, and the largest batch of one, where the profile says it."""
    settings = getattr(profile.roles, generating(profile).value)
    return settings.replicas, settings.max_num_seqs


def available(profile: Profile) -> Mapping[str, Written]:
    """Method -> its settings but for K: n-grams, which need nothing, and what the profile has."""
    found: dict[str, Written] = {SpeculationMethod.NGRAM.value: {"method": SpeculationMethod.NGRAM.value, **_LOOKED_UP}}
    own = profile.speculation_of(generating(profile))
    if own is not None:
        dumped = own.model_dump(mode="json", exclude_unset=True, exclude={"schedule", "num_speculative_tokens"})
        found[own.method.value] = dumped
    return found


def written(setting: Setting, methods: Mapping[str, Written]) -> Written | None:
    """What a profile says for this; ``None`` for no speculation."""
    if not setting.k:
        return None
    more: dict[str, Value] = {"num_speculative_tokens": setting.k}
    if setting.schedule:
        more["schedule"] = [[*each] for each in setting.schedule]
    return {**methods[setting.method], **more}


def overrides(profile: Profile, what: Written | None) -> list[str]:
    """As ``--set``: it is said for the whole profile, so that a draft is on every role, and of no role by itself."""
    own = [f"roles.{role}.speculation=null" for role, each in profile.roles.items() if each.speculation is not None]
    new = [] if what is None else [f"speculation={json.dumps(what)}"]
    return [*own, "speculation=null", *new]


def temperatures(told: Iterable[float | None]) -> Mapping[float, float]:
    """Of a workload's requests -> their shares; a request that says none has the API's 1."""
    each = [1.0 if value is None else float(value) for value in told]
    return {value: each.count(value) / len(each) for value in sorted(set(each))}
