"""Takes instances out of a running deployment's traffic, and back, by its proxy's configuration file."""

import time
from collections.abc import Callable, Collection
from dataclasses import replace

import httpx
from prometheus_client.parser import text_string_to_metric_families

from launcher.errors import RunDirectoryError
from launcher.local import proxy_file
from launcher.local.run_directory import RunDirectory
from proxy.config import ProxyConfig

_NOTICED_WITHIN = 10.0
"""Seconds; the proxy looks at its file every second."""
_STEP = 0.2
_DRAINING, _IN_FLIGHT = "duet_instance_draining", "duet_in_flight"
"""The proxy's metrics, not its ``/ready``: they are those of all its workers."""
Shown = Callable[[str, str], float]
"""A metric's value for an instance."""


def drain(directory: RunDirectory, names: Collection[str], *, within: float, tell: Callable[[str], None]) -> bool:
    """Give these instances no new requests, and wait for those they have; whether they ended in ``within`` seconds."""
    _change(directory, lambda draining: draining | set(names), names)
    _until(directory, lambda shown: all(shown(_DRAINING, name) for name in names), _NOTICED_WITHIN)
    tell(f"{', '.join(sorted(names))}: no new requests; waiting for those that run")
    return _until(directory, lambda shown: not any(shown(_IN_FLIGHT, name) for name in names), within)


def resume(directory: RunDirectory, names: Collection[str]) -> None:
    """Give these instances requests again."""
    _change(directory, lambda draining: draining - set(names), names)
    _until(directory, lambda shown: not any(shown(_DRAINING, name) for name in names), _NOTICED_WITHIN)


def _change(directory: RunDirectory, change: Callable[[set[str]], set[str]], names: Collection[str]) -> None:
    if directory.holder() is None:
        raise RunDirectoryError(f"nothing runs in {directory.path}")

    def changed(config: ProxyConfig) -> ProxyConfig:
        known = [instance.name for instance in config.topology.instances]
        if unknown := sorted(set(names) - set(known)):
            raise RunDirectoryError(f"no instance {', '.join(unknown)}; there are: {', '.join(known)}")
        return replace(config, draining=tuple(sorted(change(set(config.draining)))))

    proxy_file.change(directory.proxy_config, changed)


def _until(directory: RunDirectory, reached: Callable[[Shown], bool], within: float) -> bool:
    deadline = time.monotonic() + within
    deployment = directory.read_state()
    url = next((each.url for each in deployment.instances if each.role == "proxy"), "") if deployment else ""
    # The certificate is for the name that clients use; what is asked here is on this machine.
    with httpx.Client(trust_env=False, verify=False, timeout=5.0) as client:
        while True:
            if reached(_shown(client, f"{url}/metrics")):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_STEP)


def _shown(client: httpx.Client, url: str) -> Shown:
    try:
        answer = client.get(url)
    except httpx.HTTPError as exc:
        raise RunDirectoryError(f"the proxy does not answer at {url}: {exc}") from exc
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise RunDirectoryError(
            f"{url} needs a client's key, so it cannot be seen what still runs: give the proxy an address for "
            "operators (proxy.admin)"
        )
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]

    def value(metric: str, instance: str) -> float:
        return sum(s.value for s in samples if s.name == metric and s.labels["instance"] == instance)

    return value
