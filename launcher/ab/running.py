"""Begins and ends experiments of a running deployment, by its proxy's configuration file."""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import tenacity
from pydantic import TypeAdapter, ValidationError

from launcher.ab.report import AbReport
from launcher.ab.request import AbRequest, faults, split_of
from launcher.errors import RunDirectoryError
from launcher.local import proxy_file
from launcher.local.asking import allowed, ask
from launcher.local.run_directory import RunDirectory
from launcher.measure import served
from launcher.measure.conditions import Conditions
from launcher.measure.conditions_here import conditions
from proxy.config import ProxyConfig
from proxy.experiment.answer import ExperimentAnswer
from proxy.split import Split

REPORT = "report.json"
"""In an experiment's folder: what was shown when it was stopped."""
BEGUN = "begun.json"
"""There, too: under which conditions."""
_FOLDER = "experiment"
_NOTICED_WITHIN = 10.0
"""Seconds; the proxy looks at its file every second."""
_PATIENCE = 10.0


def start(directory: RunDirectory, request: AbRequest, command: str) -> Split:
    """Begin it, and return when the proxy divides; raises :class:`RunDirectoryError` when it cannot be.

    ``command`` is what the report says of how it was begun.
    """
    _running(directory)
    plan = directory.read_plan()
    objectives = {} if plan is None else plan.objectives
    split = split_of(request, time.strftime("ab-%Y%m%d-%H%M%S"), secrets.token_hex(8), objectives)

    def begun(config: ProxyConfig) -> ProxyConfig:
        if found := list(faults(split, config)):
            raise RunDirectoryError("; ".join(found))
        return replace(config, split=split)

    proxy_file.change(directory.proxy_config, begun)
    _await(directory, lambda answer: answer.split is not None and answer.split.id == split.id)
    told = asyncio.run(conditions(served.running(directory), command))
    _keep(reports(directory) / split.id / BEGUN, TypeAdapter(Conditions).dump_json(told, indent=2))
    return split


def look(directory: RunDirectory) -> ExperimentAnswer:
    """What it shows so far; raises :class:`RunDirectoryError` when nothing runs or answers."""
    _running(directory)
    answer = ask(directory, "GET", "/experiment", _PATIENCE)
    try:
        return TypeAdapter(ExperimentAnswer).validate_json(allowed(answer))
    except ValidationError as exc:
        raise RunDirectoryError(
            f"{answer.request.url} answered {answer.status_code}, not what an experiment shows"
        ) from exc


def stop(directory: RunDirectory) -> tuple[AbReport, Path | None]:
    """End it: all requests go where rules say; the report, and where it is kept.

    What only divides the requests is taken away, too, and has nothing worth keeping.
    """
    last = look(directory)
    split = last.split
    if split is None:
        raise RunDirectoryError("no experiment runs: `launcher ab start` begins one")
    folder = reports(directory) / split.id
    report = AbReport(_begun(folder / BEGUN), datetime.now(UTC).isoformat(timespec="seconds"), last)
    file = None if split.experiment is None else folder / REPORT
    if file is not None:
        _keep(file, TypeAdapter(AbReport).dump_json(report, indent=2))

    def ended(config: ProxyConfig) -> ProxyConfig:
        of_this = config.split is not None and config.split.id == split.id
        return replace(config, split=None) if of_this else config

    proxy_file.change(directory.proxy_config, ended)
    _await(directory, lambda answer: answer.split is None or answer.split.id != split.id)
    return report, file


def to_json(shown: ExperimentAnswer | AbReport) -> str:
    """As indented JSON."""
    return TypeAdapter(type(shown)).dump_json(shown, indent=2).decode()


def reports(directory: RunDirectory) -> Path:
    """The folder of all experiments."""
    return directory.proxy_config.parent / _FOLDER


def _keep(file: Path, text: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text + b"\n")
    except OSError as exc:
        raise RunDirectoryError(f"cannot write {file}: {exc.strerror}; the experiment goes on") from exc


def _begun(file: Path) -> Conditions | None:
    try:
        return TypeAdapter(Conditions).validate_json(file.read_bytes())
    except (OSError, ValidationError):  # of use to readers, and to nothing else
        return None


def _running(directory: RunDirectory) -> None:
    try:
        directory.running()
    except RunDirectoryError as exc:
        raise RunDirectoryError(
            f"{exc}. Experiments are for a deployment on this machine; in a cluster, install one release for each arm "
            "and compare them with `launcher compare`"
        ) from exc


def _await(directory: RunDirectory, reached: Callable[[ExperimentAnswer], bool]) -> None:
    """Until the proxy has followed."""
    try:
        for attempt in tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_NotYet),
            wait=tenacity.wait_fixed(0.2),
            stop=tenacity.stop_after_delay(_NOTICED_WITHIN),
            reraise=True,
        ):
            with attempt:
                if not reached(look(directory)):
                    raise _NotYet
    except _NotYet as exc:
        raise RunDirectoryError(
            f"the proxy has not followed {directory.proxy_config} within {_NOTICED_WITHIN:g} s: `launcher logs proxy` "
            "says why"
        ) from exc


class _NotYet(Exception):
    """It has not followed so far."""
