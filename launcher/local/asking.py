"""Asks a running deployment's proxy what it tells operators."""

import httpx

from launcher.errors import RunDirectoryError
from launcher.local import operator_key
from launcher.local.deployment import PROXY
from launcher.local.run_directory import RunDirectory


def ask(directory: RunDirectory, method: str, path: str, patience: float) -> httpx.Response:
    """Its answer within so many seconds; raises :class:`RunDirectoryError` when nothing runs or answers."""
    proxy = next(each for each in directory.running().instances if each.role == PROXY)
    url, key = f"{proxy.url}{path}", operator_key.headers(directory.path)
    try:
        # The certificate is for the name that clients use; what is asked here is on this machine.
        return httpx.request(method, url, headers=key, trust_env=False, verify=False, timeout=patience)
    except httpx.HTTPError as exc:
        raise RunDirectoryError(
            f"the proxy does not answer at {url}: {exc}: `launcher status` says how far it is"
        ) from exc


def allowed(answer: httpx.Response) -> bytes:
    """Its body; raises :class:`RunDirectoryError` when a key was asked for."""
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise RunDirectoryError(
            f"{answer.request.url} needs a key: give the proxy an address for operators (proxy.admin), or them keys "
            "(proxy.admin_keys)"
        )
    return answer.content
