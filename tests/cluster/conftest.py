"""A cluster, namespaces in it, and the chart with scripted engines as pods."""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from launcher import loader
from launcher.cluster.values import values
from tests.cluster import site as sites
from tests.cluster.release import Release
from tests.cluster.site import Site

PROFILE = """\
description: Scripted engines
device: cpu
model: {path: /models/fake, served_name: fake}
roles:
  prefill: {kv_cache_memory: 1MiB, cores: 1}
  decode: {kv_cache_memory: 1MiB, cores: 1}
proxy:
  timeouts: {whole_answer: 60}
  canary: {interval: 5}
startup_timeout: 60
"""


@pytest.fixture(scope="session")
def site() -> Site:
    """The cluster; skips with a notice where there is none."""
    found = sites.find()
    if found is None:
        pytest.skip("no cluster: KUBECONFIG with DUET_TEST_IMAGE (see README.md, Contributing), or DUET_TEST_CLUSTER")
    return found


@pytest.fixture
def own_cluster(site: Site) -> Site:
    """One that may be disturbed; skips where it is somebody's."""
    if site.program is None:
        pytest.skip("a cluster made for tests is needed: this one is not to be disturbed")
    return site


@contextmanager
def new_namespace(site: Site) -> Iterator[str]:
    """The end takes it away."""
    name = f"duet-test-{time.monotonic_ns() % 10**9}"
    site.run("kubectl", "create", "namespace", name)
    try:
        yield name
    finally:
        site.run("kubectl", "delete", "namespace", name, "--wait=false")
        gone = ("pods", "--all", "--namespace", name, "--force", "--grace-period=0", "--wait=false")
        site.run("kubectl", "delete", *gone)


@pytest.fixture
def namespace(site: Site) -> Iterator[str]:
    """Of one test."""
    with new_namespace(site) as name:
        yield name


@pytest.fixture
def release(site: Site, namespace: str, tmp_path: Path) -> Iterator[Release]:
    """Not installed yet."""
    found = Release(site, namespace, tmp_path)
    yield found
    found.close()


MakeValues = Callable[..., dict[str, Any]]


@pytest.fixture
def fakes(site: Site, tmp_path: Path) -> MakeValues:
    """Values of scripted engines, see :func:`scripted`."""
    return partial(scripted, site, tmp_path)


def scripted(site: Site, folder: Path, *overrides: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    """The chart's values; ``overrides`` are of the profile, ``env`` are engines' variables."""
    file = folder / "fakes.yaml"
    file.write_text(PROFILE + yaml.safe_dump({"engine_command": [site.python, "-m", "tests.fakes.engine"]}))
    plan = values(loader.load(str(file), overrides), "fakes")
    return {**plan, **site.values(env={"FAKE_ENGINE_PACE": "0.02", **(env or {})}), "model": {"inImage": True}}


@pytest.fixture(scope="module")
def installed(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """Scripted engines that run already, for tests that only look."""
    with new_namespace(site) as name:
        folder = tmp_path_factory.mktemp("installed")
        found = Release(site, name, folder)
        found.install(scripted(site, folder))
        yield found


@pytest.fixture
async def client(release: Release) -> AsyncIterator[Callable[[], httpx.AsyncClient]]:
    """Of the proxy's Service, once it is installed."""
    made: list[httpx.AsyncClient] = []

    def connect() -> httpx.AsyncClient:
        made.append(httpx.AsyncClient(base_url=release.url(), timeout=60, trust_env=False))
        return made[-1]

    yield connect
    for each in made:
        await each.aclose()
