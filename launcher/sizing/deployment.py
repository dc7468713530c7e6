"""Decision: the sizes of all engines of a plan, and what they need of each device together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from launcher.inventory import Checkpoint, Inventory
from launcher.plan import EngineInstance, Plan
from launcher.profile import Device
from launcher.sizing.instance import size
from launcher.sizing.measured import Measured
from launcher.sizing.models import ModelFacts
from launcher.sizing.settings import EngineSettings, checkpoints_of, settings_of
from launcher.sizing.size import InstanceSize, Verdict

SHOWN = 0.985
"""Of what a driver calls a GPU's memory, so much is shown to an engine: 23.6 of 24.0, 79.2 of 80 GiB were seen."""
_USUAL_CARD = 80 * 2**30
"""Bytes, by which defaults are chosen where nobody says what devices there will be."""


@dataclass(frozen=True, slots=True)
class DeviceSize:
    """One device, or the machine's memory, and what its engines need of it together."""

    name: str
    total: int
    free: int
    """Bytes that nobody has now."""
    needed: int
    instances: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether all of them fit at once."""
        return Verdict.DOES_NOT_FIT if self.needed > self.free else Verdict.FITS


@dataclass(frozen=True, slots=True)
class DeploymentSize:
    """All engines of a plan."""

    profile: str
    margin: float
    sources: Mapping[str, str]
    """Model -> where it is known from."""
    instances: tuple[InstanceSize, ...]
    devices: tuple[DeviceSize, ...]
    """Empty where the machine does not have them."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all instances and devices."""
        verdicts = [*(each.verdict for each in self.instances), *(each.verdict for each in self.devices)]
        order = (Verdict.DOES_NOT_FIT, Verdict.UNKNOWN, Verdict.TIGHT)
        return next((each for each in order if each in verdicts), Verdict.FITS)


def engine_settings(plan: Plan, card: int | None = None) -> Mapping[str, EngineSettings]:
    """Of each engine, by its name; ``card``: bytes of every device, in place of the machine's."""
    return {
        engine.name: settings_of(engine.argv, engine.env, plan.device, _card(engine, card)) for engine in plan.engines
    }


def keys(plan: Plan) -> Mapping[str, str]:
    """Engine -> what engines have in common that need the same memory."""
    settings = engine_settings(plan)
    return {engine.name: key_of(settings[engine.name], _card(engine, None)) for engine in plan.engines}


def key_of(settings: EngineSettings, card: tuple[str, int]) -> str:
    """The same for engines that need the same memory: all that decides it, and the device's name and memory."""
    return blake2b(repr((settings, card)).encode(), digest_size=16).hexdigest()


def wanted(plan: Plan) -> set[Checkpoint]:
    """The models that have to be looked up for a plan."""
    return {each for settings in engine_settings(plan).values() for each in checkpoints_of(settings)}


def deployment_size(
    plan: Plan,
    inventory: Inventory,
    models: Mapping[Checkpoint, ModelFacts],
    *,
    margin: float = 0.2,
    card: int | None = None,
    before: Mapping[str, Measured] | None = None,
) -> DeploymentSize:
    """Of the plan on this machine, or on one whose devices all have ``card`` bytes.

    ``before`` is what earlier starts told, by :func:`key_of`.
    """
    told = before or {}
    instances = tuple(
        size(
            engine.name,
            engine.role.value,
            settings,
            models,
            devices=devices_of(engine, inventory),
            card=_shown(plan, engine, inventory, card),
            margin=margin,
            before=told.get(key_of(settings, _card(engine, card))),
        )
        for engine, settings in zip(plan.engines, engine_settings(plan, card).values(), strict=True)
    )
    return DeploymentSize(
        profile=plan.profile,
        margin=margin,
        sources={checkpoint.name: facts.source for checkpoint, facts in models.items()},
        instances=instances,
        devices=() if card is not None else tuple(_devices(plan, inventory, instances)),
    )


def devices_of(engine: EngineInstance, inventory: Inventory) -> tuple[str, ...]:
    """The names of an engine's GPUs, by their index where the machine has them; empty on a CPU."""
    indices = {gpu.uuid: str(gpu.index) for gpu in inventory.gpus}
    return tuple(f"GPU {indices.get(device, device)}" for device in engine.devices)


def _card(engine: EngineInstance, card: int | None) -> tuple[str, int]:
    """Name and memory by which the engine chooses its defaults."""
    return engine.device_type or "", card or engine.device_memory or _USUAL_CARD


def _shown(plan: Plan, engine: EngineInstance, inventory: Inventory, card: int | None) -> int | None:
    if plan.device is Device.CPU:
        return inventory.memory_available if card is None else card
    total = card or engine.device_memory
    return None if total is None else int(total * SHOWN)


def claimed(instance: InstanceSize) -> int:
    """Bytes that an engine takes of each of its devices: all that it may, unless its KV cache has a size of its own."""
    is_explicit = any(part.name == "KV cache" for part in instance.parts)  # of a model that is not known
    if is_explicit or (instance.kv is not None and instance.kv.error == 0):
        return instance.total
    return max(instance.fixed, instance.budget or 0)


def _devices(plan: Plan, inventory: Inventory, instances: Sequence[InstanceSize]) -> list[DeviceSize]:
    if plan.device is Device.CPU:
        needed = sum(claimed(each) * each.ranks for each in instances)
        names = tuple(each.name for each in instances)
        return [DeviceSize("memory", inventory.memory_total, inventory.memory_available, needed, names)]
    found = []
    for gpu in inventory.gpus:
        name = f"GPU {gpu.index}"
        here = [each for each in instances if name in each.devices]
        if here:
            free = int(gpu.memory_free * SHOWN)
            needed = sum(claimed(each) for each in here)
            found.append(DeviceSize(name, gpu.memory_total, free, needed, tuple(each.name for each in here)))
    return found
