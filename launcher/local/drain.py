"""Takes instances out of a running deployment's traffic, and back, by its proxy's configuration file."""

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import httpx
from prometheus_client.parser import text_string_to_metric_families

from launcher.errors import RunDirectoryError
from launcher.local import operator_key, proxy_file
from launcher.local.deployment import PROXY
from launcher.local.remains import Remains
from launcher.local.run_directory import RunDirectory
from proxy.config import ProxyConfig
from proxy.topology import Instance

_NOTICED_WITHIN = 10.0
"""Seconds; the proxy looks at its file every second."""
_STEP = 0.2
_TOLD_EVERY = 2.0
"""Seconds between two lines about one instance."""
_DRAINING, _HEALTHY, _IN_FLIGHT = "duet_instance_draining", "duet_instance_healthy", "duet_in_flight"
"""The proxy's metrics, not its ``/ready``: they are those of all its workers."""
Shown = Callable[[str, str], float]
"""A metric's value for an instance."""


def drain(directory: RunDirectory, names: Collection[str], *, within: float, tell: Callable[[str], None]) -> bool:
    """Give these instances no new requests, and wait for those they have and for KV that decode has not read yet.

    Returns whether nothing was left after ``within`` seconds; with 0, nothing is waited for.
    """
    instances = take_out(directory, names)
    deployment = directory.read_state()
    remaining = [Remains(instance, deployment.kv_lease if deployment else 0.0) for instance in instances]
    told: dict[str, tuple[float, str]] = {}

    def nothing_left(shown: Shown, client: httpx.Client) -> bool:
        for remains in tuple(remaining):
            left = remains.look(round(shown(_IN_FLIGHT, remains.name)), client)
            if left is None:
                tell(f"{remains.name}: drained; waited {remains.story()}")
                remaining.remove(remains)
                continue
            now, (before, said) = time.monotonic(), told.get(remains.name, (-math.inf, ""))
            if left != said and now - before >= _TOLD_EVERY:
                told[remains.name] = now, left
                tell(f"{remains.name}: {left}")
        return not remaining

    return _until(directory, nothing_left, within)


def take_out(directory: RunDirectory, names: Collection[str]) -> list[Instance]:
    """Give these instances no new requests; they themselves."""
    config = _change(directory, lambda draining: draining | set(names), names)
    _until(directory, lambda shown, _: all(shown(_DRAINING, name) for name in names), _NOTICED_WITHIN)
    return [instance for instance in config.topology.instances if instance.name in names]


def resume(directory: RunDirectory, names: Collection[str]) -> None:
    """Give these instances requests again."""
    _change(directory, lambda draining: draining - set(names), names)
    _until(directory, lambda shown, _: not any(shown(_DRAINING, name) for name in names), _NOTICED_WITHIN)


def await_healthy(directory: RunDirectory, name: str, within: float) -> bool:
    """Until the proxy finds an instance healthy; whether it does."""
    return _until(directory, lambda shown, _: bool(shown(_HEALTHY, name)), within)


def _change(directory: RunDirectory, change: Callable[[set[str]], set[str]], names: Collection[str]) -> ProxyConfig:
    directory.running()

    def changed(config: ProxyConfig) -> ProxyConfig:
        known = [instance.name for instance in config.topology.instances]
        if unknown := sorted(set(names) - set(known)):
            raise RunDirectoryError(f"no instance {', '.join(unknown)}; there are: {', '.join(known)}")
        return replace(config, draining=tuple(sorted(change(set(config.draining)))))

    return proxy_file.change(directory.proxy_config, changed)


def _until(directory: RunDirectory, reached: Callable[[Shown, httpx.Client], bool], within: float) -> bool:
    deadline = time.monotonic() + within
    deployment = directory.read_state()
    url = next((each.url for each in deployment.instances if each.role == PROXY), "") if deployment else ""
    # The certificate is for the name that clients use; what is asked here is on this machine.
    with httpx.Client(trust_env=False, verify=False, timeout=5.0) as client:
        while True:
            if reached(_shown(client, f"{url}/metrics", operator_key.headers(directory.path)), client):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_STEP)


def _shown(client: httpx.Client, url: str, key: Mapping[str, str]) -> Shown:
    try:
        answer = client.get(url, headers=key)
    except httpx.HTTPError as exc:
        raise RunDirectoryError(
            f"the proxy does not answer at {url}: {exc}: `launcher status` says how far it is"
        ) from exc
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise RunDirectoryError(
            f"{url} needs a key, so it cannot be seen what still runs: give the proxy an address for operators "
            "(proxy.admin), or them keys (proxy.admin_keys)"
        )
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]

    def value(metric: str, instance: str) -> float:
        return sum(s.value for s in samples if s.name == metric and s.labels["engine"] == instance)

    return value
