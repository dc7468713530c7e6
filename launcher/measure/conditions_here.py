"""Looks at this machine and at the server for what a report says of them."""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import httpx

from launcher import machine
from launcher.measure.conditions import Conditions
from launcher.measure.driver import certificates
from launcher.measure.target import Target

_PACKAGES = ("duet-serve", "httpx", "numpy", "scipy")
_PATIENCE = 5.0


async def conditions(target: Target, command: str, environ: Mapping[str, str] = os.environ) -> Conditions:
    """As they are now."""
    inventory = machine.look(environ)
    versions = {name: told for name in _PACKAGES if (told := _version(name))}
    engine = await _engine_version(target)
    return Conditions(
        command=command,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={**versions, "python": platform.python_version(), **({"vllm": engine} if engine else {})},
        system=platform.platform(),
        processor=_processor(),
        cores=inventory.cores,
        memory=inventory.memory_total,
        gpus=tuple(each.name for each in inventory.gpus),
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


async def _engine_version(target: Target) -> str | None:
    """As the first engine that can be reached says it, else the server itself."""
    pages = [f"{each.metrics.removesuffix('/metrics')}/version" for each in target.engines]
    async with httpx.AsyncClient(trust_env=False, verify=certificates(target.url), timeout=_PATIENCE) as client:
        for page in (*pages, f"{target.url}/version"):
            with suppress(httpx.HTTPError, KeyError, TypeError, ValueError):
                answer = await client.get(page)
                return str(answer.raise_for_status().json()["version"])
    return None


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
