"""Decision: a profile with prefill and decode -> the same hardware with every instance doing both."""

import json
from dataclasses import dataclass
from typing import Any

from launcher.errors import MeasureError
from launcher.profile import Device, Profile, RoleSettings
from launcher.yaml_document import Value

_OF_BOTH = ("scaling", "replicas", "devices", "cores", "speculation", "quantization", "env", "secrets", "engine_args")
"""Settings that are worked out, or that prefill may have other than decode for a reason."""


@dataclass(frozen=True, slots=True)
class Derived:
    """An aggregated deployment."""

    overrides: tuple[str, ...]
    """As ``--set``, on top of the profile."""
    said: tuple[str, ...]
    """What was derived, one sentence for each thing; for the report."""


def aggregated(profile: Profile, cores: int) -> Derived:
    """As many instances on the same devices, each with decode's settings, and no KV transfer.

    ``cores``: of this machine, which instances on a CPU share. Raises :class:`MeasureError` when the devices do not
    make whole instances, or the profile has no prefill.
    """
    prefill, decode = profile.roles.prefill, profile.roles.decode
    if prefill is None or decode is None:
        raise MeasureError(
            "roles: this profile is aggregated already: name one with prefill and decode for --aggregated"
        )
    replicas, said = _replicas(profile, prefill, decode)
    settings = decode.model_dump(mode="json", exclude_unset=True, exclude={*_OF_BOTH})
    settings["replicas"] = replicas
    if decode.devices is not None or prefill.devices is not None:
        if decode.devices is None or prefill.devices is None:
            raise MeasureError("roles.*.devices: name the devices of both roles, or of none, for --aggregated")
        settings["devices"] = [*dict.fromkeys([*prefill.devices, *decode.devices])]
    if prefill.cores is not None or decode.cores is not None:
        share = max(1, cores // (prefill.replicas + decode.replicas))
        total = prefill.replicas * (prefill.cores or share) + decode.replicas * (decode.cores or share)
        settings["cores"] = max(1, total // replicas)
        said.append(f"{settings['cores']} cores for each instance, of {total} in all")
    for key in ("speculation", "quantization"):
        if getattr(decode, key) is not None:
            settings[key] = getattr(decode, key).model_dump(mode="json", exclude_unset=True)
    for key in ("env", "engine_args"):
        if found := getattr(decode, key):
            settings[key] = dict(found)
    if decode.secrets:
        settings["secrets"] = {
            name: each.model_dump(mode="json", exclude_none=True) for name, each in decode.secrets.items()
        }
    said += _differences(prefill, decode, settings)
    overrides = ("roles.prefill=null", "roles.decode=null", f"roles.aggregated={json.dumps(settings)}")
    return Derived(overrides, (*said, "no KV transfer: every instance computes its own prompts"))


def _replicas(profile: Profile, prefill: RoleSettings, decode: RoleSettings) -> tuple[int, list[str]]:
    if profile.device is Device.CPU:
        total = prefill.replicas + decode.replicas
        return total, [
            f"{total} aggregated instances in place of {prefill.replicas} prefill and {decode.replicas} decode"
        ]
    devices = prefill.replicas * prefill.devices_per_instance + decode.replicas * decode.devices_per_instance
    each = decode.devices_per_instance
    if devices % each:
        raise MeasureError(
            f"roles: {devices} devices in all make no whole instances of {each} as decode's: compare with a profile of "
            "your own instead (launcher compare A B)"
        )
    return devices // each, [
        f"{devices // each} aggregated instances of {each} devices on the {devices} devices of {prefill.replicas} "
        f"prefill and {decode.replicas} decode"
    ]


def _differences(prefill: RoleSettings, decode: RoleSettings, settings: dict[str, Any]) -> list[str]:
    """Prefill's settings that cannot hold, said; the larger batch of tokens is taken, as prompts are computed there."""
    said = ["all other settings are decode's"]
    tokens = [each.max_num_batched_tokens for each in (prefill, decode) if each.max_num_batched_tokens is not None]
    if tokens:
        settings["max_num_batched_tokens"] = max(tokens)
        said.append(f"max_num_batched_tokens is {max(tokens)}, the larger of both roles")
    if prefill.kv_cache_memory and decode.kv_cache_memory and prefill.kv_cache_memory != decode.kv_cache_memory:
        replaced: Value = str(decode.kv_cache_memory)
        said.append(
            f"the KV cache of each instance is decode's ({replaced} bytes), not prefill's ({prefill.kv_cache_memory})"
        )
    if prefill.device_type != decode.device_type:
        kinds = f"{prefill.device_type or 'not said'}, {decode.device_type or 'not said'}"
        said.append(f"the roles' kinds of devices differ ({kinds}): instances are not all alike")
    return said
