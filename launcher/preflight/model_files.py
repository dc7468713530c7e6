"""Is the model there, when it is a folder on this machine?"""

from collections.abc import Iterator
from pathlib import Path

from launcher.inventory import Inventory
from launcher.plan import Plan
from launcher.preflight.checkpoint import read_config


def findings(plan: Plan, inventory: Inventory) -> Iterator[str]:
    """What is missing in the model's folder; a hub id is the engine's to fetch."""
    folder = Path(plan.model)
    if not folder.is_absolute():
        return
    if not folder.exists():
        yield f"the model's folder {folder} does not exist: check model.path (--model); a hub id goes into model.id"
    elif not folder.is_dir():
        yield f"{folder} is no folder: model.path (--model) wants the folder with config.json and the weights"
    elif not (folder / "config.json").is_file():
        yield f"{folder} is not a Hugging Face model folder, it has no config.json: check model.path"
    elif not read_config(plan.model):
        yield f"{folder / 'config.json'} is empty or no JSON object: it does not describe a model"
    elif not any(folder.glob("*.safetensors")) and not any(folder.glob("*.bin")):
        yield f"{folder} has no weights (*.safetensors): the download or conversion did not finish"
