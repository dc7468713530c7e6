#!/usr/bin/env python3
"""A ``helm`` that installs nothing: its releases are files in the folder ``FAKE_HELM``.

- ``planned``: the manifest that any chart gives
- ``releases.json``: what is installed, ``{name: [manifest of each revision]}``
- ``refusal``: said on stderr by whatever would change something, with exit status 1
- ``begun``: a FIFO; an installation says there that it has begun, ends when it is interrupted, and writes ``cleaned``
- ``version``: what it says it is; v3.17.3 without
- ``calls``: one line for each call, written by it; a plan among the values is kept as ``plan.yaml``
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

FOLDER = Path(os.environ["FAKE_HELM"])
_RELEASES, _PLAN = FOLDER / "releases.json", "plan.yaml"


def main(arguments: list[str]) -> None:
    with (FOLDER / "calls").open("a") as calls:
        calls.write(" ".join(arguments) + "\n")
    releases = json.loads(_RELEASES.read_text()) if _RELEASES.exists() else {}
    match arguments:
        case ["version", *_]:
            say("version", "v3.17.3")
        case ["list", *_]:
            sys.stdout.write(json.dumps([row(name, revisions) for name, revisions in releases.items()]))
        case ["get", "manifest", name, *_]:
            sys.stdout.write(releases[name][-1] if name in releases else missing())
        case ["upgrade", "--install", name, _, *options]:
            keep_plan(options)
            refuse()
            planned = (FOLDER / "planned").read_text()
            if "--dry-run=server" in options:
                sys.stdout.write("Release is not there; would be installed\n" + json.dumps({"manifest": planned}))
            else:
                wait_for_interruption()
                keep(releases | {name: [*releases.get(name, []), planned]})
        case ["rollback", name, *more]:
            refuse()
            to = int(more[0]) if more[0].isdigit() else len(releases[name]) - 1
            keep(releases | {name: [*releases[name], releases[name][to - 1]]})
        case ["uninstall", name, *_]:
            keep({each: revisions for each, revisions in releases.items() if each != name})


def row(name: str, revisions: list[str]) -> dict[str, str]:
    chart = "nginx-1.0.0" if name == "nginx" else "duet-0.1.0"
    return {"name": name, "revision": str(len(revisions)), "status": "deployed", "chart": chart, "updated": "now"}


def say(file: str, otherwise: str) -> None:
    sys.stdout.write((FOLDER / file).read_text() if (FOLDER / file).exists() else otherwise)


def keep(releases: dict[str, list[str]]) -> None:
    _RELEASES.write_text(json.dumps(releases))


def keep_plan(options: list[str]) -> None:
    for each in options:
        file = Path(each.removeprefix("--values="))
        if file.name == _PLAN:
            (FOLDER / _PLAN).write_text(file.read_text())


def refuse() -> None:
    if (FOLDER / "refusal").exists():
        sys.exit((FOLDER / "refusal").read_text())


def wait_for_interruption() -> None:
    if (FOLDER / "begun").exists():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        (FOLDER / "begun").write_text("begun")
        signal.sigwait({signal.SIGINT})
        (FOLDER / "cleaned").touch()
        sys.exit("Error: interrupted")


def missing() -> NoReturn:
    sys.exit("Error: release: not found")


if __name__ == "__main__":
    main(sys.argv[1:])
