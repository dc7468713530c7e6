"""The program ``helm``: all that is written to a cluster is written by it."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.cluster.chart import shipped
from launcher.errors import ClusterError, ReleaseError

_OLDEST = (3, 13)
"""Before it there is no ``--dry-run=server``."""
_WHERE = "https://helm.sh/docs/intro/install has it"
_HINTS = (
    (r"another operation .* in progress", "an earlier one was broken off: `launcher rollback RELEASE` or `undeploy`"),
    (r'namespaces "[^"]+" not found', "make it, or give --create-namespace"),
    (r"invalid ownership metadata|already exists", "another release or person made it: choose another --release"),
    (r"the specifications of the schema", "`helm show values {chart}` explains all there are"),
    (r"no matches for kind", "its operator is not in this cluster: install that first, or turn its values off"),
    (r"release has no -?\d+ version", "`helm history RELEASE` lists the revisions that are kept"),
    (r"unreachable", "check KUBECONFIG, --context and that the API server can be reached"),
    (r"forbidden", "ask for rights in this namespace: `kubectl auth can-i --list`"),
)
_CHATTER = re.compile(r"WARNING|walk\.go|Release |[EWI]\d{4} ")
"""Lines of Helm and of its library that are not the reason."""
_UNREACHABLE = re.compile(r"cluster unreachable", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Release:
    """One that is in a namespace."""

    name: str
    revision: int
    status: str
    """``deployed``, or what else Helm says of it."""
    chart: str
    """Its name and version."""
    updated: str

    @property
    def is_ours(self) -> bool:
        """Whether it is of Duet's chart."""
        return re.fullmatch(r"duet-\d.*", self.chart) is not None


class Helm:
    """In one namespace. When Helm refuses: :class:`ReleaseError`; when there is no cluster: :class:`ClusterError`."""

    def __init__(self, namespace: str, context: str | None, environ: Mapping[str, str]) -> None:
        program = shutil.which("helm", path=environ.get("PATH"))
        if program is None:
            raise ClusterError(f"there is no helm on PATH; {_WHERE}")
        self._program = program
        self._environ = dict(environ)
        self._where = ["--namespace", namespace, *(["--kube-context", context] if context else [])]
        self.where = shlex.join(self._where)
        version = self._text("version", "--template", "{{.Version}}")
        numbers = re.match(r"v(\d+)\.(\d+)", version)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST:
            oldest = ".".join(map(str, _OLDEST))
            raise ClusterError(f"{program} is {version.strip() or 'of no known version'}; {oldest} is needed; {_WHERE}")

    def releases(self) -> list[Release]:
        """All of this namespace, those that failed, too."""
        every = ("--deployed", "--failed", "--pending", "--uninstalling")
        return [
            Release(each["name"], int(each["revision"]), each["status"], each["chart"], each["updated"])
            for each in json.loads(self._text("list", *every, "--output", "json"))
        ]

    def release(self, name: str) -> Release:
        """The one with this name; raises :class:`ClusterError` with the names there are."""
        found = self.releases()
        if (mine := _ours(found, name)) is not None:
            return mine
        there = ", ".join(each.name for each in found if each.is_ours) or "none"
        raise ClusterError(f"there is no release {name} in the namespace {self._where[1]}; of Duet there are: {there}")

    def installed(self, name: str) -> str:
        """The manifest of this release; empty when there is none."""
        return "" if _ours(self.releases(), name) is None else self._text("get", "manifest", name)

    def planned(self, name: str, chart: str, values: Sequence[str]) -> str:
        """What would be installed, as the chart answers to this cluster."""
        told = self._text("upgrade", "--install", name, chart, *values, "--dry-run=server", "--output", "json")
        manifest = json.loads(told[told.index("{") :])["manifest"]  # before it may be a line for people
        return str(manifest)

    def install(self, name: str, chart: str, values: Sequence[str], within: float) -> None:
        """Or upgrade; waits for hooks, not for pods."""
        self._text("upgrade", "--install", name, chart, *values, f"--timeout={round(within)}s")

    def rollback(self, name: str, revision: int | None) -> None:
        """To this revision, or else to the one before; waits for no pods."""
        self._text("rollback", name, *([] if revision is None else [str(revision)]))

    def uninstall(self, name: str) -> None:
        """Waits for no pods."""
        self._text("uninstall", name)

    def _text(self, *arguments: str) -> str:
        argv = [self._program, *arguments, *self._where]
        with subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environ,
            text=True,
            errors="replace",
        ) as process:
            try:
                out, err = process.communicate()
            except KeyboardInterrupt:  # it got the signal, too; killed, it would leave a release that nobody can change
                process.wait()
                raise
        if process.returncode:
            raise _refusal(arguments[0], err.strip() or out.strip())
        return out


def _ours(found: Sequence[Release], name: str) -> Release | None:
    """Raises :class:`ClusterError` when one of another chart has this name."""
    named = next((each for each in found if each.name == name), None)
    if named is not None and not named.is_ours:
        raise ClusterError(f"the release {name} is of the chart {named.chart}, not of Duet: choose another name")
    return named


def _refusal(verb: str, said: str) -> ClusterError | ReleaseError:
    lines = [line for line in said.splitlines() if not _CHATTER.match(line)]
    text = re.sub(r"^(Error|level=ERROR msg=): ?", "", " ".join(lines)) or "it says nothing"
    hint = next((f"; {fix}" for pattern, fix in _HINTS if re.search(pattern, text)), "")
    hint = hint.replace("{chart}", shlex.quote(str(shipped())))
    message = f"helm {verb}: {text}{hint}"
    return ClusterError(message) if _UNREACHABLE.search(text) else ReleaseError([message])


def options(files: Sequence[Path], settings: Sequence[str], *, create_namespace: bool) -> list[str]:
    """Of Helm, for values: what comes later wins."""
    return [
        *(f"--values={file}" for file in files),
        *(f"--set={each}" for each in settings),
        *(["--create-namespace"] if create_namespace else []),
    ]
