"""What the launcher has written of the deployment, beside the proxy's configuration."""

import json
from pathlib import Path

from proxy.config import ABOUT

_MOST = 256 * 1024
"""Bytes; a longer file is not the launcher's."""


def about(configuration: Path | None) -> dict[str, object] | None:
    """The document as it is there; ``None`` when there is none, or what is there is none."""
    if configuration is None:
        return None
    file = configuration.with_name(ABOUT)
    try:
        with file.open("rb") as opened:
            text = opened.read(_MOST + 1)
        document = json.loads(text) if len(text) <= _MOST else None
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
