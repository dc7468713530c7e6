"""Public models by their configurations, written down in ``configs``."""

import json
from functools import cache
from pathlib import Path

from launcher.inventory import Checkpoint
from launcher.model_folder import quantization_of
from launcher.profile import Device
from launcher.sizing.architecture import Architecture
from launcher.sizing.families import architecture_of
from launcher.sizing.instance import size
from launcher.sizing.models import ModelFacts
from launcher.sizing.settings import settings_of
from launcher.sizing.size import InstanceSize

CONFIGS = Path(__file__).parent / "configs"
NAMES = sorted(file.stem for file in CONFIGS.glob("*.json"))
GIB = 2**30


@cache
def said(name: str) -> dict:
    """What is written down of a model."""
    return json.loads((CONFIGS / f"{name}.json").read_text())


def architecture(name: str) -> Architecture:
    """Of a public model."""
    return architecture_of(said(name)["config"])


def facts(name: str) -> ModelFacts:
    """As if its configuration were all that is known."""
    config = said(name)["config"]
    return ModelFacts(f"configs/{name}.json", config, quantization_of(config))


def engine(
    name: str, *options: str, card: float | None = 80, device: Device = Device.CUDA, margin: float = 0.2, **more
) -> InstanceSize:
    """The size of an engine with this model on devices that show it ``card`` GiB."""
    memory = None if card is None else int(card * GIB)
    settings = settings_of(("--model", name, *options), {}, device, ("NVIDIA H100", memory or 80 * GIB))
    known = {Checkpoint(each): facts(each) for each in NAMES}
    return size("engine", "aggregated", settings, known, card=memory, margin=margin, **more)


def part(sized: InstanceSize, name: str) -> int:
    """Bytes of one part; 0 if it has none."""
    return next((each.bytes for each in sized.parts if each.name == name), 0)
