"""Takes instances out of a running deployment's traffic, and back, by its proxy's configuration file."""

import os
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from launcher.errors import RunDirectoryError
from launcher.local.run_directory import RunDirectory
from proxy.config import ConfigError, ProxyConfig, dump, load

_NOTICED_WITHIN = 10.0
"""Seconds; the proxy looks at its file every second."""
_STEP = 0.2


def drain(directory: RunDirectory, names: Collection[str], *, within: float, tell: Callable[[str], None]) -> bool:
    """Give these instances no new requests, and wait for those they have; whether they ended in ``within`` seconds."""
    config = _change(directory, lambda draining: draining | set(names), names)
    _until(config, lambda state: all(each["draining"] for each in state if each["name"] in names), _NOTICED_WITHIN)
    tell(f"{', '.join(sorted(names))}: no new requests; waiting for those that run")
    return _until(config, lambda state: not any(each["in_flight"] for each in state if each["name"] in names), within)


def resume(directory: RunDirectory, names: Collection[str]) -> None:
    """Give these instances requests again."""
    config = _change(directory, lambda draining: draining - set(names), names)
    _until(config, lambda state: not any(each["draining"] for each in state if each["name"] in names), _NOTICED_WITHIN)


def _change(directory: RunDirectory, change: Callable[[set[str]], set[str]], names: Collection[str]) -> ProxyConfig:
    file = directory.path / "proxy.json"
    if directory.holder() is None:
        raise RunDirectoryError(f"nothing runs in {directory.path}")
    try:
        config = load(file)
    except ConfigError as exc:
        raise RunDirectoryError(str(exc)) from exc
    known = [instance.name for instance in config.topology.instances]
    if unknown := sorted(set(names) - set(known)):
        raise RunDirectoryError(f"no instance {', '.join(unknown)}; there are: {', '.join(known)}")
    changed = replace(config, draining=tuple(sorted(change(set(config.draining)))))
    _write(file, dump(changed))
    return changed


def _write(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    os.replace(new, file)  # the proxy never reads half of it


def _until(config: ProxyConfig, reached: Callable[[list[dict[str, Any]]], bool], within: float) -> bool:
    deadline = time.monotonic() + within
    url = f"http://{config.settings.host}:{config.settings.port}/ready"
    with httpx.Client(trust_env=False, timeout=5.0) as client:
        while True:
            try:
                if reached(client.get(url).json()["instances"]):
                    return True
            except httpx.TransportError as exc:
                raise RunDirectoryError(f"the proxy does not answer at {url}: {exc}") from exc
            if time.monotonic() > deadline:
                return False
            time.sleep(_STEP)
