"""The chart as Helm renders it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm"
PROFILES = sorted(path.stem for path in (CHART / "files/plans").glob("*.yaml"))
RELEASE, NAMESPACE = "pd", "llm"
OPERATORS = ("leaderworkerset.x-k8s.io/v1",)
"""APIs that a cluster has only with an operator, and of which the chart asks whether they are there."""
Manifest = dict[str, Any]


class Refused(Exception):
    """What Helm says instead of manifests."""


class Helm:
    """One version of it."""

    def __init__(self, program: Path, home: Path) -> None:
        """``home``: for what Helm keeps."""
        self._program = program
        kept = {f"HELM_{name}_HOME": str(home / name) for name in ("CACHE", "CONFIG", "DATA")}
        # Nothing of the cluster that the one who tests may have.
        self._env = {**os.environ, **kept, "KUBECONFIG": os.devnull}

    def template(
        self,
        values: Mapping[str, Any],
        *,
        kubernetes: str = "1.31",
        apis: tuple[str, ...] = OPERATORS,
        release: str = RELEASE,
    ) -> list[Manifest]:
        """All objects; raises :class:`Refused`."""
        text = self.text(values, kubernetes=kubernetes, apis=apis, release=release)
        return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]

    def text(
        self,
        values: Mapping[str, Any],
        *,
        kubernetes: str = "1.31",
        apis: tuple[str, ...] = OPERATORS,
        release: str = RELEASE,
    ) -> str:
        """The same as one text."""
        given = ["--kube-version", kubernetes, *(f"--api-versions={api}" for api in apis)]
        return self._run("template", release, str(CHART), "--namespace", NAMESPACE, "-f", "-", *given, values=values)

    def notes(self, values: Mapping[str, Any]) -> str:
        """What a person sees after an installation."""
        said = self._run(
            "install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--dry-run=client", "-f", "-", values=values
        )
        return said.partition("NOTES:\n")[2]

    def lint(self, values: Mapping[str, Any]) -> None:
        """Raises :class:`Refused`."""
        self._run("lint", "--strict", str(CHART), "-f", "-", values=values)

    def _run(self, *arguments: str, values: Mapping[str, Any]) -> str:
        done = subprocess.run(
            [self._program, *arguments], input=json.dumps(values), env=self._env, capture_output=True, text=True
        )
        if done.returncode:
            raise Refused(done.stderr + done.stdout)
        return done.stdout


def helm(name: str, home: Path) -> Helm:
    """``helm3`` or ``helm4``; skips with a notice where it is missing, which in CI is a failure."""
    beside = Path(sys.prefix) / "programs" / name
    found = beside if beside.exists() else shutil.which(name)
    if found is None and os.environ.get("CI") != "true":
        pytest.skip(f"no {name} here: scripts/programs fetches it")
    assert found is not None, "scripts/programs fetches it"
    return Helm(Path(found), home)


def plan(profile: str) -> Manifest:
    """A shipped one."""
    return yaml.load((CHART / f"files/plans/{profile}.yaml").read_text(), yaml.CSafeLoader)["plan"]


def of_kind(manifests: list[Manifest], *kinds: str) -> list[Manifest]:
    """Those objects."""
    return [each for each in manifests if each["kind"] in kinds]


def named(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    """The one object."""
    [found] = [each for each in of_kind(manifests, kind) if each["metadata"]["name"] == name]
    return found


def pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    """What becomes a pod: templates, and pods themselves."""
    for each in manifests:
        match each["kind"]:
            case "Deployment" | "Job":
                yield each["spec"]["template"]
            case "LeaderWorkerSet":
                group = each["spec"]["leaderWorkerTemplate"]
                yield from (group["leaderTemplate"], group["workerTemplate"])
            case "Pod":
                yield each


def engines(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Pod templates of engines that serve, by role."""
    return {
        each["metadata"]["labels"]["duet/role"]: each
        for each in pods(manifests)
        if "duet/role" in each["metadata"].get("labels", {})
    }


def selected(manifests: list[Manifest], selector: Manifest) -> list[Manifest]:
    """The pods that a label selector chooses."""
    return [each for each in pods(manifests) if matches(each["metadata"].get("labels", {}), selector)]


def matches(labels: Mapping[str, str], selector: Manifest) -> bool:
    """Whether a label selector chooses what has these labels."""
    operators = {
        "Exists": lambda each: each["key"] in labels,
        "In": lambda each: labels.get(each["key"]) in each["values"],
        "NotIn": lambda each: labels.get(each["key"]) not in each["values"],
    }
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        operators[each["operator"]](each) for each in selector.get("matchExpressions", [])
    )


def ports(pod: Manifest) -> dict[str, int]:
    """Of all containers, by name."""
    return {
        port["name"]: port["containerPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
    }
