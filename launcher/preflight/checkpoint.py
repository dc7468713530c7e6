"""What a model says of itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launcher.inventory import Checkpoint
from launcher.model_folder import json_object
from launcher.preflight.finding import Case
from launcher.sizing.models import look_up


def config_of(case: Case) -> Mapping[str, Any]:
    """The configuration of the model that is served: of its folder, of the hub's cache, or of a model that is known.

    Empty when nobody knows it.
    """
    checkpoint = Checkpoint(case.plan.model, case.profile.model.revision)
    facts = look_up([checkpoint], case.environ).get(checkpoint)
    return {} if facts is None else facts.config


def read_config(model: str) -> dict[str, Any]:
    """Its config.json; empty when there is none, or it cannot be read (:mod:`.model_files` tells that)."""
    return json_object(Path(model) / "config.json", [])
