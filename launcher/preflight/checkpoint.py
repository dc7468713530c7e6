"""What a model's folder says about itself."""

import json
from pathlib import Path
from typing import Any


def read_config(model: str) -> dict[str, Any]:
    """Its config.json; empty when there is none, or it cannot be read (:mod:`.model_files` tells that)."""
    try:
        config = json.loads((Path(model) / "config.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}
