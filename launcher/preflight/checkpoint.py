"""What a model's folder says about itself."""

from pathlib import Path
from typing import Any

from launcher.model_folder import json_object


def read_config(model: str) -> dict[str, Any]:
    """Its config.json; empty when there is none, or it cannot be read (:mod:`.model_files` tells that)."""
    return json_object(Path(model) / "config.json", [])
