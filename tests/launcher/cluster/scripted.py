"""A cluster that answers by script, its Helm, and the objects in it."""

import copy
import json
import os
import shlex
import stat
import sys
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

import tests.fakes

SEEN: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("seen.json").read_text())
"""What a real cluster told of pods that do not get ready, and of workloads that get no pods."""
Object = dict[str, Any]
_PROGRAM = Path(tests.fakes.__file__).with_name("helm.py")


def seen(what: str) -> Object:
    """A copy."""
    return copy.deepcopy(SEEN[what])


def workload(role: str, *, ready: int = 1, wanted: int = 1, generation: int = 1, observed: int = 1) -> Object:
    """A Deployment and how far it is."""
    counts = {"replicas": wanted, "updatedReplicas": wanted, "availableReplicas": ready, "observedGeneration": observed}
    metadata = {"name": f"pd-{role}", "uid": f"deployment-{role}", "generation": generation}
    return {
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": wanted, "progressDeadlineSeconds": 900},
        "status": counts,
    }


def replica_set(role: str, number: int) -> Object:
    """Of a revision of a workload."""
    return {
        "metadata": {
            "name": f"pd-{role}-{number}",
            "uid": f"set-{role}-{number}",
            "annotations": {"deployment.kubernetes.io/revision": str(number)},
            "ownerReferences": [{"uid": f"deployment-{role}", "controller": True}],
        }
    }


def pod(role: str, what: str = "good", *, number: int = 1, ends: str | None = None) -> Object:
    """One that is as one was seen, of a revision of a workload."""
    found: Object = seen(what)["pod"]
    found["metadata"]["name"] = f"pd-{role}-{number}-abcde"
    found["metadata"]["labels"]["duet/role"] = role
    found["metadata"]["ownerReferences"] = [{"uid": f"set-{role}-{number}", "controller": True}]
    if ends:
        found["metadata"]["deletionTimestamp"] = ends
    return found


class ScriptedCluster:
    """``answers``: kind -> what is told, time after time; the last one stays."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Any]] = defaultdict(lambda: [[]])
        self.status: dict[str, int] = {}
        """By kind, if it is not 200."""
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        """It is there no longer."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kubeconfig(self, folder: Path) -> str:
        """A file by which clients find it; its namespace is ``llm``."""
        server = f"http://127.0.0.1:{self._server.server_port}"
        document = {
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "users": [{"name": "me", "user": {"token": "none"}}],
            "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me", "namespace": "llm"}}],
            "current-context": "here",
        }
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(document))
        return str(file)

    def answer(self, path: str) -> tuple[int, str]:
        """Of ``GET``."""
        parts = urlsplit(path)
        self.asked.append(path)
        if parts.path.endswith("/log"):
            kind = "previous" if "previous" in parse_qs(parts.query) else "log"
            return self.status.get(kind, 200), self._next(kind) or ""
        kind = parts.path.rpartition("/")[2]
        status, found = self.status.get(kind, 200), self._next(kind)
        body = {"items": found} if isinstance(found, list) else found
        return status, json.dumps(body if status == 200 else {"kind": "Status", "message": f"no {kind} for you"})

    def _next(self, kind: str) -> Any:
        waiting = self.answers[kind]
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet, or the client's acknowledgement is waited for

            def do_GET(self) -> None:
                status, text = outer.answer(self.path)
                content = text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        return Handler


class ScriptedHelm:
    """Its folder, and how it is found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir()
        program = programs / "helm"
        command = shlex.join([sys.executable, "-S", str(_PROGRAM)])
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.environ = {"FAKE_HELM": str(folder), "PATH": f"{programs}:{os.environ['PATH']}"}
        self.plan("kind: Service\nmetadata: {name: pd-proxy}\nspec: {port: 8000}\n")

    def plan(self, manifest: str) -> None:
        """What any chart gives from now on."""
        (self.folder / "planned").write_text(manifest)

    def has(self, **releases: list[str]) -> None:
        """These are installed: the manifests of their revisions."""
        (self.folder / "releases.json").write_text(json.dumps(releases))

    @property
    def releases(self) -> dict[str, list[str]]:
        """What is installed."""
        file = self.folder / "releases.json"
        return json.loads(file.read_text()) if file.exists() else {}

    @property
    def calls(self) -> list[str]:
        """All that it was asked for."""
        return (self.folder / "calls").read_text().splitlines()
