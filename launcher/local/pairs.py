"""Asks a running deployment's proxy how hand-overs between its instances went."""

from dataclasses import dataclass

import httpx
from pydantic import TypeAdapter, ValidationError

from launcher.errors import RunDirectoryError
from launcher.local.run_directory import RunDirectory


@dataclass(frozen=True, slots=True)
class PairReport:
    """One prefill and one decode instance, since both run."""

    prefill: str
    decode: str
    standing: str
    """``untried``, ``working``, ``failing``, ``out``, ``trial`` or ``refused``."""
    handed_over: int
    failed: int
    last_handed_over: float | None
    """Seconds since the epoch."""
    reason: str
    """Of the last failure, until a hand-over succeeds; or in what the two differ."""


@dataclass(frozen=True, slots=True)
class _Answer:
    pairs: tuple[PairReport, ...]


_ANSWER = TypeAdapter(_Answer)
_PAIRS = TypeAdapter(tuple[PairReport, ...])


def pairs_json(pairs: tuple[PairReport, ...]) -> str:
    """As indented JSON."""
    return _PAIRS.dump_json(pairs, indent=2).decode()


def gather(directory: RunDirectory) -> tuple[PairReport, ...]:
    """All pairs; raises :class:`RunDirectoryError` when nothing runs or the proxy does not say."""
    deployment = directory.read_state() if directory.holder() is not None else None
    proxy = next((each for each in deployment.instances if each.role == "proxy"), None) if deployment else None
    if proxy is None:
        raise RunDirectoryError(f"nothing runs in {directory.path}")
    url = f"{proxy.url}/pairs"
    try:
        # The certificate is for the name that clients use; what is asked here is on this machine.
        answer = httpx.get(url, trust_env=False, verify=False, timeout=5.0)
    except httpx.HTTPError as exc:
        raise RunDirectoryError(f"the proxy does not answer at {url}: {exc}") from exc
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise RunDirectoryError(f"{url} needs a client's key: give the proxy an address for operators (proxy.admin)")
    try:
        return _ANSWER.validate_json(answer.content).pairs
    except ValidationError as exc:
        raise RunDirectoryError(f"{url} answered {answer.status_code}, not the pairs") from exc
