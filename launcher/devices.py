"""Decision: which GPUs each instance gets."""

from collections.abc import Iterator, Mapping
from itertools import count

from launcher import gpus
from launcher.errors import PlanError
from launcher.inventory import Gpu, Inventory
from launcher.plan import instance_name
from launcher.profile import Device, Profile, RoleSettings


def assign(profile: Profile, inventory: Inventory) -> Mapping[str, tuple[str, ...]]:
    """Instance name -> its GPUs, by UUID where the machine tells it: an index may mean another one after a restart.

    Roles that name their devices get those; the others take the ones that nobody named, in order. Raises
    :class:`PlanError` when a role names another number of devices than its instances need.
    """
    roles = {(pool, role): s for pool, each in profile.by_pool().items() for role, s in each.roles.items()}
    if profile.device is Device.CPU:
        return {
            instance_name(role, pool, number): ()
            for (pool, role), settings in roles.items()
            for number in range(settings.replicas)
        }
    named = {
        (pool, role): tuple(_named(f"pools.{pool}.roles.{role}" if pool else f"roles.{role}", settings, inventory))
        for (pool, role), settings in roles.items()
    }
    taken = {device for devices in named.values() for device in devices}
    free = (device for device in (_uuid(index, inventory) for index in count()) if device not in taken)
    found = {}
    for (pool, role), settings in roles.items():
        own = iter(named[pool, role]) if settings.devices is not None else free
        for number in range(settings.replicas):
            name = instance_name(role, pool, number)
            found[name] = tuple(next(own) for _ in range(settings.devices_per_instance))
    return found


def kind(devices: tuple[str, ...], inventory: Inventory) -> str | None:
    """What sort of GPU these are; ``None`` where this machine does not tell."""
    return next((gpu.name for gpu in _found(devices, inventory)), None)


def memory(given: int | None, kind: str | None, devices: tuple[str, ...], inventory: Inventory) -> int | None:
    """Bytes of the smallest of them: what the profile says of them or of their kind, else this machine."""
    if given is not None:
        return int(given)
    here = (gpu.memory_total for gpu in _found(devices, inventory))
    return gpus.memory(kind) or min(here, default=None)


def _found(devices: tuple[str, ...], inventory: Inventory) -> Iterator[Gpu]:
    return (gpu for gpu in inventory.gpus if gpu.uuid in devices or str(gpu.index) in devices)


def _named(key: str, settings: RoleSettings, inventory: Inventory) -> Iterator[str]:
    given = settings.devices or []
    needed = settings.replicas * settings.devices_per_instance
    if given and len(given) != needed:
        raise PlanError(
            f"{key}.devices: {len(given)} device(s) are named, but {settings.replicas} instance(s) of "
            f"{settings.devices_per_instance} device(s) each (tensor_parallel x pipeline_parallel x data_parallel) "
            f"need {needed}: name as many, or change replicas"
        )
    yield from (_uuid(int(device), inventory) if str(device).isdecimal() else str(device) for device in given)


def _uuid(index: int, inventory: Inventory) -> str:
    return next((gpu.uuid for gpu in inventory.gpus if gpu.index == index), str(index))
