"""The key by which the owner of a deployment may do what its proxy keeps for operators.

Whoever may read the run directory is the owner. It is made for each run, and only where the profile asks operators for
keys; the proxy's configuration has its digest only.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from launcher.local import proxy_file
from launcher.local.run_directory import RunDirectory
from proxy.config import ProxyConfig
from proxy.settings import ClientKey

_FILE = "operator.key"


def make(directory: RunDirectory) -> None:
    """Before the proxy starts, whose configuration is there; raises :class:`launcher.errors.RunDirectoryError`."""
    file = directory.path / _FILE
    file.unlink(missing_ok=True)
    if not proxy_file.asks_operators(directory.proxy_config):
        return
    key = secrets.token_urlsafe(32)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(key)
    own = ClientKey(f"launcher-{secrets.token_hex(4)}", sha256(key.encode()).hexdigest())

    def known(config: ProxyConfig) -> ProxyConfig:
        keys = (*config.settings.admin_keys, own)
        return replace(config, settings=replace(config.settings, admin_keys=keys))

    proxy_file.change(directory.proxy_config, known)


def headers(run_directory: Path) -> Mapping[str, str]:
    """That show it to the proxy; empty where there is none, or what is there can be none."""
    try:
        key = (run_directory / _FILE).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return {}
    return {"authorization": f"Bearer {key}"} if key and key.isprintable() else {}
