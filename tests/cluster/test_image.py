"""The image that the Dockerfile builds: on a base made of this machine's Python, since nothing can be pulled here."""

import os
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig
from pathlib import Path

import httpx
import pytest

from tests.cluster.site import REPOSITORY, SMALL

_LIBRARY = re.compile(r"(/\S+) \(0x")
MOST = 450
"""MiB that the project and what it needs may take, on top of the base."""


@pytest.fixture(scope="module")
def image(site, tmp_path_factory) -> str:
    """Built as the Dockerfile says."""
    if site.program is None:
        pytest.skip("only a cluster made for tests can build images")
    folder = tmp_path_factory.mktemp("base")
    base(folder)
    site.of_cluster("image", "build", str(folder), "duet-test-base")
    given = ("--build-arg", "BASE=localhost/duet-test-base:dev")
    site.of_cluster("image", "build", str(REPOSITORY), "duet-test", *given)
    site.of_cluster("image", "build", str(REPOSITORY), "duet-test-fakes", *given, "--target", "test")
    return "localhost/duet-test:dev"


def base(folder: Path) -> None:
    """What python:3.12-slim has, as far as it matters."""
    home, local = Path(sys.base_prefix), folder / "local"
    library = Path(sysconfig.get_path("stdlib")).relative_to(home)
    without = shutil.ignore_patterns("__pycache__", "test", "tests", "site-packages", "*.a", "config-*")
    shutil.copytree(home / library, local / library, ignore=without, symlinks=True)
    shutil.copytree(home / library / "ensurepip", local / library / "ensurepip", dirs_exist_ok=True)
    (local / "bin").mkdir()
    program = Path(sys.executable).resolve()
    shutil.copy(program, local / "bin" / "python3")
    (local / "bin" / program.name).symlink_to("python3")
    binaries = [program, *(home / library / "lib-dynload").glob("*.so")]
    told = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=True).stdout
    for name in {*_LIBRARY.findall(told)}:
        (folder / "root" / name.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, folder / "root" / name.lstrip("/"))
    authorities = os.environ.get("PIP_CERT") or ssl.get_default_verify_paths().cafile
    shutil.copy(authorities or "/etc/ssl/certs/ca-certificates.crt", folder / "authorities.pem")
    (folder / "Dockerfile").write_text(
        "FROM localhost/busybox:1\nCOPY root /\nCOPY local /usr/local\nCOPY authorities.pem /etc/ssl/authorities.pem\n"
        "ENV PIP_CERT=/etc/ssl/authorities.pem PATH=/usr/local/bin:/usr/bin:/bin\n"
    )


async def test_the_image_serves_as_nobody_with_a_read_only_root(image, site, release, fakes, client):
    values = fakes()
    values["proxy"] = {"image": {"repository": "localhost/duet-test", "tag": "dev", "pullPolicy": "Never"}, **SMALL}
    release.install(values)
    proxy = client()
    await release.hands_over(proxy)
    answer = await proxy.post("/v1/completions", json={"model": "fake", "prompt": "one two three", "max_tokens": 2})
    assert answer.headers["x-duet-path"] == "pd"
    assert "proven" in release.helm("test", "pd", "--logs")
    (name,) = release.names("proxy")
    assert release.kubectl("exec", name, "--", "id", "-u").strip() == "2000"
    assert "unlimited" not in release.kubectl("exec", name, "--", "launcher", "list")
    kilobytes = int(release.kubectl("exec", name, "--", "du", "-sk", "/opt/duet").split()[0])
    assert kilobytes / 1024 < MOST


async def test_engines_by_script_come_from_it_for_clusters_that_only_run_images(image, release, fakes, client):
    values = fakes()
    of_tests = {"image": {"repository": "localhost/duet-test-fakes", "tag": "dev", "pullPolicy": "Never"}, **SMALL}
    for engine in values["plan"]["engines"].values():
        engine["command"] = ["python", "-m", "tests.fakes.engine"]
    values["engine"] = {**of_tests, "python": "python", "extraEnv": [{"name": "FAKE_ENGINE_PACE", "value": "0.01"}]}
    values["proxy"] = of_tests
    release.install(values)
    proxy: httpx.AsyncClient = client()
    await release.hands_over(proxy)
