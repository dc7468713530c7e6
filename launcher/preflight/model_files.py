"""Is the model there, when it is a folder on this machine?"""

from collections.abc import Iterator
from pathlib import Path

from launcher.paths import is_hub_id
from launcher.preflight.checkpoint import read_config
from launcher.preflight.finding import Case, Fault, Layer, Rule


def _missing(case: Case) -> Iterator[Fault]:
    """What is missing in the model's folder; a hub id is the engine's to fetch."""
    folder = Path(case.plan.model)
    if not folder.is_absolute():
        return
    key = "model.bundled" if case.profile.model.bundled else "model.path"
    if not folder.exists():
        given = str(case.profile.model.path)
        is_id = "/" in given and is_hub_id(given)
        fix = f"write model.id: {given} if that is a hub id" if is_id else "a hub id goes into model.id"
        fix = f"check model.path (--model); {fix}"
        yield Fault(key, f"the model's folder {folder} does not exist", fix)
    elif not folder.is_dir():
        yield Fault(
            key, f"{folder} is no folder", "model.path (--model) wants the folder with config.json and the weights"
        )
    elif (folder / "adapter_config.json").is_file() or any(folder.glob("*.gguf")):
        return  # rules of their own tell what that is
    elif not (folder / "config.json").is_file():
        yield Fault(key, f"{folder} is not a Hugging Face model folder, it has no config.json", "check model.path")
    elif not read_config(case.plan.model):
        yield Fault(
            key,
            f"{folder / 'config.json'} is empty or no JSON object",
            "fetch or convert the model again: it does not describe one",
        )
    elif not any(folder.glob("*.safetensors")) and not any(folder.glob("*.bin")):
        yield Fault(
            key, f"{folder} has no weights (*.safetensors)", "fetch or convert the model again: that did not finish"
        )


RULES = (Rule("model/files-there", Layer.STATIC, "Hugging Face's folder layout", _missing, needs_model=True),)
