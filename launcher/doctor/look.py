"""Looks at a running deployment: its state, what its proxy tells, its logs and its machine."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

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
from launcher.quantize import checked
from launcher.trust import trust

_PATIENCE = 5.0
_LINES = 2000
"""Last ones of each log that are looked at."""
_LONGEST = 4000
"""Letters of each of them."""
_PAGES = ("/metrics", "/metrics/engines")
_OURS = "duet_"
_LARGEST = 16 << 20
"""Bytes of one answer; those of a hundred engines are half of that."""
_SHOWN = 200
"""Letters of what somebody else's program says."""


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
    not_seen = [*seen.not_seen, *filter(None, (_unreadable(directory, each) for each in deployment.instances))]
    if plan is None:
        not_seen.append("the run directory's plan cannot be read: devices and side channels are not looked at")
    return replace(
        seen,
        status=await status.gather(directory),
        deployment=directory.running(),
        plan=plan,
        logs={each.name: _log(directory, each, now) for each in deployment.instances},
        at=now,
        checked=None if plan is None else checked.last(Path(plan.model)),
        host=await asyncio.to_thread(host.look, directory.path, deployment.instances, plan),
        not_seen=tuple(not_seen),
    )


async def look_at_proxy(url: str, seconds: float, key: Mapping[str, str], *, verify: bool = True) -> Sight:
    """What a proxy tells: all that can be seen of a deployment on other machines; ``key``: headers that allow it."""
    believed = trust() if verify else False
    async with httpx.AsyncClient(trust_env=False, verify=believed, timeout=_PATIENCE, headers=key) as client:
        first = await asyncio.gather(*(_page(client, url + path) for path in _PAGES))
        if not all(isinstance(page, str) for page in first):
            await asyncio.sleep(seconds)
        last, (matrix, why, reason) = await asyncio.gather(
            asyncio.gather(*(_page(client, url + path) for path in _PAGES)), _instances(client, url)
        )
    proxy, engines = (
        None if isinstance(now, str) else Series(now, () if isinstance(before, str) else before)
        for now, before in zip(last, first, strict=True)
    )
    reasons = [page for page in last if isinstance(page, str)] + ([reason] if reason else [])
    return Sight(seconds, proxy=proxy, engines=engines, pairs=matrix, reasons=why, not_seen=tuple(reasons))


async def _page(client: httpx.AsyncClient, url: str) -> tuple[Sample, ...] | str:
    """Its samples, or why there are none."""
    try:
        answer = await _get(client, url)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            return (
                f"the proxy's {url} answered 401, it needs an operator's key (proxy.admin_keys; --key with --proxy), "
                "or give operators an address (proxy.admin)"
            )
        if answer.status_code != httpx.codes.OK:
            return f"the proxy's {url} answered {answer.status_code}"
        samples = read(answer.content.decode(errors="replace"))
    except _Unanswered as exc:
        return f"the proxy does not answer at {url} ({exc})"
    except ValueError as exc:
        return f"the proxy's {url} is not in Prometheus's format ({str(exc)[:_SHOWN]})"
    if samples and not any(name.startswith(_OURS) for name, _, _ in samples):
        return f"the proxy's {url} tells no metric of a proxy ({_OURS}...): is it another program's address?"
    return samples


async def _instances(client: httpx.AsyncClient, url: str) -> tuple[pairs.Matrix | None, Mapping[str, str], str]:
    """All pairs, why instances get no requests, and why one of that is not known."""
    matrix = None
    try:
        matrix = pairs.read(await _get(client, f"{url}/pairs"))
        ready = _READY.validate_json((await _get(client, f"{url}/ready")).content)
    except (_Unanswered, RunDirectoryError) as exc:
        return matrix, {}, f"the proxy's pairs and instances: {exc}"
    except ValidationError:
        return matrix, {}, f"the proxy's instances: {url}/ready does not answer as a proxy does"
    return matrix, {each.name: each.reason for each in ready.instances}, ""


class _Unanswered(Exception):
    """Why there is no whole answer."""


async def _get(client: httpx.AsyncClient, url: str) -> httpx.Response:
    """The whole answer, which is neither endless nor slow without an end; raises :class:`_Unanswered`."""
    body = bytearray()
    try:
        async with asyncio.timeout(_PATIENCE), client.stream("GET", url) as answer:
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > _LARGEST:
                    raise _Unanswered(f"it tells more than {_LARGEST >> 20} MiB")
    except (TimeoutError, httpx.TimeoutException) as exc:
        raise _Unanswered(f"no whole answer within {_PATIENCE:g} s") from exc
    except httpx.HTTPError as exc:
        raise _Unanswered((str(exc) or type(exc).__name__) + _advice(exc)) from exc
    return httpx.Response(answer.status_code, content=bytes(body), request=answer.request)


def _advice(error: httpx.HTTPError) -> str:
    return ": name the file of its authority in SSL_CERT_FILE" if "CERTIFICATE_VERIFY_FAILED" in str(error) else ""


def _log(directory: RunDirectory, instance: InstanceState, now: float) -> str:
    lately = instance.started_at is not None and now - instance.started_at < LATELY
    lines = last_lines(directory.log(instance.name), _LINES, runs=2 if instance.restarts and lately else 1)
    return "\n".join(line[:_LONGEST] for line in lines)


def _unreadable(directory: RunDirectory, instance: InstanceState) -> str:
    """Why an instance that runs has no log, if it has none."""
    try:
        if instance.pid:
            directory.log(instance.name).open("rb").close()
    except OSError as exc:
        return f"the log of {instance.name}, {exc.filename}, cannot be read: {exc.strerror}"
    return ""
