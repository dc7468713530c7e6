"""Looks at a running deployment: its state, what its proxy tells, its logs and its machine."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import httpx
from pydantic import TypeAdapter, ValidationError

from launcher.doctor import host
from launcher.doctor.series import Sample, Series, read
from launcher.doctor.sight import LATELY, Sight
from launcher.errors import RunDirectoryError
from launcher.local import operator_key, pairs, status
from launcher.local.deployment import PROXY, InstanceState
from launcher.local.load_progress import last_lines
from launcher.local.run_directory import RunDirectory
from launcher.trust import trust

_PATIENCE = 5.0
_LINES = 2000
"""Last ones of each log that are looked at."""
_PAGES = ("/metrics", "/metrics/engines")


@dataclass(frozen=True, slots=True)
class _Instance:
    name: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Ready:
    instances: tuple[_Instance, ...] = ()


_READY = TypeAdapter(_Ready)


async def look(directory: RunDirectory, seconds: float, tell: Callable[[str], None]) -> Sight:
    """Look twice at the metrics, so many seconds apart; ``tell`` is told what takes time.

    Raises :class:`RunDirectoryError` when nothing runs.
    """
    deployment = directory.running()
    proxy = next(each for each in deployment.instances if each.role == PROXY)
    tell(f"Looking at {deployment.profile} at {deployment.address} for {seconds:g} s")
    # The certificate is for the name that clients use; what is asked here is on this machine.
    seen = await look_at_proxy(proxy.url, seconds, operator_key.headers(directory.path), verify=False)
    plan = directory.read_plan()
    now = time.time()
    not_seen = () if plan else ("the run directory's plan cannot be read: devices and side channels are not looked at",)
    return replace(
        seen,
        status=await status.gather(directory),
        deployment=directory.running(),
        plan=plan,
        logs={each.name: _log(directory, each, now) for each in deployment.instances},
        at=now,
        host=await asyncio.to_thread(host.look, directory.path, deployment.instances, plan),
        not_seen=(*seen.not_seen, *not_seen),
    )


async def look_at_proxy(url: str, seconds: float, key: Mapping[str, str], *, verify: bool = True) -> Sight:
    """What a proxy tells: all that can be seen of a deployment on other machines; ``key``: headers that allow it."""
    reasons: list[str] = []
    believed = trust() if verify else False
    async with httpx.AsyncClient(trust_env=False, verify=believed, timeout=_PATIENCE, headers=key) as client:
        first = [await _page(client, url + path, []) for path in _PAGES]
        if any(page is not None for page in first):
            await asyncio.sleep(seconds)
        last = [await _page(client, url + path, reasons) for path in _PAGES]
        proxy, engines = (
            None if now is None else Series(now, before or ()) for now, before in zip(last, first, strict=True)
        )
        matrix = None
        why: dict[str, str] = {}
        try:
            matrix = pairs.read(await client.get(f"{url}/pairs"))
            ready = _READY.validate_json((await client.get(f"{url}/ready")).content)
            why = {each.name: each.reason for each in ready.instances}
        except (httpx.HTTPError, RunDirectoryError, ValidationError) as exc:
            reasons.append(f"the proxy's pairs and instances: {exc!r}")
    return Sight(seconds, proxy=proxy, engines=engines, pairs=matrix, reasons=why, not_seen=tuple(reasons))


async def _page(client: httpx.AsyncClient, url: str, reasons: list[str]) -> tuple[Sample, ...] | None:
    try:
        answer = await client.get(url)
        if answer.status_code == httpx.codes.OK:
            return read(answer.text)
        reasons.append(f"the proxy's {url} answered {answer.status_code}")
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            reasons[-1] += (
                ", it needs an operator's key (--key, proxy.admin_keys), or give operators an address (proxy.admin)"
            )
    except httpx.HTTPError as exc:
        reasons.append(f"the proxy does not answer at {url} ({exc!r}){_advice(exc)}")
    except ValueError as exc:
        reasons.append(f"the proxy's {url} is not in Prometheus's format ({exc})")
    return None


def _advice(error: httpx.HTTPError) -> str:
    return ": name the file of its authority in SSL_CERT_FILE" if "CERTIFICATE_VERIFY_FAILED" in str(error) else ""


def _log(directory: RunDirectory, instance: InstanceState, now: float) -> str:
    lately = instance.started_at is not None and now - instance.started_at < LATELY
    return "\n".join(last_lines(directory.log(instance.name), _LINES, runs=2 if instance.restarts and lately else 1))
