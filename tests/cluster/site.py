"""The cluster that tests use: one made for them, whose node is this machine, or the one of ``KUBECONFIG``.

``DUET_TEST_CLUSTER`` names the program that makes the former; the tests run inside of its network then. Its pods run
from this machine's files, mounted read-only. Another cluster needs ``DUET_TEST_IMAGE``: this project's image with its
tests (``docker build --target test``).
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = Path(sys.prefix) / "programs"
_PYTHON_HOME = Path(sys.executable).resolve().parents[1]
_OF_THE_SYSTEM = {"usr": "/usr", "lib": "/usr/lib", "lib64": "/usr/lib64", "ld": "/etc/ld.so.cache"}
_AT = {"lib": "/lib", "lib64": "/lib64"}
MODEL = "smollm2-135m-instruct"
"""Of the real pair."""
SMALL = {"resources": {"requests": {"cpu": "20m", "memory": "64Mi"}}}
"""What pods of tests ask for: many fit on one machine."""


class Refused(Exception):
    """What a program says that does not do it."""


@dataclass
class Site:
    """A cluster, and how code gets into its pods."""

    program: str | None
    """Of the cluster made for tests."""
    image: str | None
    folders: list[str] = field(default_factory=list)
    """More of this machine's that pods see."""

    @property
    def python(self) -> str:
        """In pods."""
        return "python" if self.image else sys.executable

    def values(self, *, env: dict[str, str] | None = None) -> dict[str, Any]:
        """Of the chart, by which its pods run this project's code; ``env`` are engines' variables."""
        variables = [{"name": name, "value": text} for name, text in (env or {}).items()]
        if self.image:
            repository, _, tag = self.image.rpartition(":")
            image = {"repository": repository, "tag": tag, "pullPolicy": "IfNotPresent"}
            code: dict[str, Any] = {"image": image, "python": "python"}
        else:
            mounts = {**_OF_THE_SYSTEM, "home": str(_PYTHON_HOME), "venv": sys.prefix, "code": str(REPOSITORY)}
            mounts |= {f"more-{number}": folder for number, folder in enumerate(self.folders)}
            code = {
                "image": {"repository": "localhost/busybox", "tag": "1", "pullPolicy": "Never"},
                "python": sys.executable,
                "extraVolumes": [{"name": name, "hostPath": {"path": path}} for name, path in mounts.items()],
                "extraVolumeMounts": [
                    {"name": name, "mountPath": _AT.get(name, path), "readOnly": True} for name, path in mounts.items()
                ],
            }
            variables += [
                {"name": "PYTHONPATH", "value": str(REPOSITORY)},
                {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
                {"name": "PATH", "value": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin"},
            ]
        small = {"resources": {"requests": {"cpu": "20m", "memory": "64Mi"}}}
        return {
            "engine": {**code, **small, "extraEnv": variables},
            "proxy": {**code, **small, "extraEnv": variables[-3:]},
        }

    def command(self, program: str, *arguments: str) -> list[str]:
        """Of kubectl, helm3 or helm4, wherever that is."""
        beside = PROGRAMS / program
        return [str(beside) if beside.exists() else program, *arguments]

    def run(self, *command: str, text: str | None = None) -> str:
        """A program's output; raises :class:`Refused`."""
        done = subprocess.run(self.command(*command), input=text, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise Refused(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def get(self, *what: str) -> dict[str, Any]:
        """As ``kubectl get``."""
        found: dict[str, Any] = json.loads(self.run("kubectl", "get", *what, "--output", "json"))
        return found

    def of_cluster(self, *verb: str) -> None:
        """Ask the program that made it."""
        assert self.program is not None
        done = subprocess.run([self.program, *verb], capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise Refused(f"{verb} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def find() -> Site | None:
    """``None`` where there is none."""
    program, image = os.environ.get("DUET_TEST_CLUSTER"), os.environ.get("DUET_TEST_IMAGE")
    if program or (image and os.environ.get("KUBECONFIG")):
        return Site(program or None, image)
    return None
