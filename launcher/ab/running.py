"""Begins and ends experiments of a running deployment, by its proxy's configuration file."""

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import tenacity
from pydantic import TypeAdapter, ValidationError

from launcher.ab.request import AbRequest, faults, split_of
from launcher.errors import RunDirectoryError
from launcher.local import proxy_file
from launcher.local.asking import allowed, ask
from launcher.local.run_directory import RunDirectory
from proxy.config import ProxyConfig
from proxy.experiment.answer import ExperimentAnswer
from proxy.split import Split

REPORT = "report.json"
"""In an experiment's folder: what was shown when it was stopped."""
_FOLDER = "experiment"
_NOTICED_WITHIN = 10.0
"""Seconds; the proxy looks at its file every second."""
_PATIENCE = 10.0


def start(directory: RunDirectory, request: AbRequest) -> Split:
    """Begin it, and return when the proxy divides; raises :class:`RunDirectoryError` when it cannot be."""
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
    return split


def look(directory: RunDirectory) -> ExperimentAnswer:
    """What it shows so far; raises :class:`RunDirectoryError` when nothing runs or answers."""
    _running(directory)
    answer = ask(directory, "GET", "/experiment", _PATIENCE)
    try:
        return _answer_type().validate_json(allowed(answer))
    except ValidationError as exc:
        raise RunDirectoryError(
            f"{answer.request.url} answered {answer.status_code}, not what an experiment shows"
        ) from exc


def stop(directory: RunDirectory) -> tuple[ExperimentAnswer, Path]:
    """End it: all requests go where rules say; the last report, and where it is kept."""
    last = look(directory)
    split = last.split
    if split is None:
        raise RunDirectoryError("no experiment runs: `launcher ab start` begins one")
    if split.experiment is None:
        raise RunDirectoryError(f"{split.id} divides the requests and is no experiment: end what has begun it")
    report = reports(directory) / split.id / REPORT
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_bytes(_answer_type().dump_json(last, indent=2) + b"\n")
    except OSError as exc:
        raise RunDirectoryError(f"cannot keep the report {report}: {exc.strerror}; the experiment goes on") from exc

    def ended(config: ProxyConfig) -> ProxyConfig:
        of_this = config.split is not None and config.split.id == split.id
        return replace(config, split=None) if of_this else config

    proxy_file.change(directory.proxy_config, ended)
    _await(directory, lambda answer: answer.split is None or answer.split.id != split.id)
    return last, report


def to_json(answer: ExperimentAnswer) -> str:
    """As indented JSON."""
    return _answer_type().dump_json(answer, indent=2).decode()


def reports(directory: RunDirectory) -> Path:
    """The folder of all experiments."""
    return directory.proxy_config.parent / _FOLDER


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


@cache
def _answer_type() -> TypeAdapter[ExperimentAnswer]:
    """Built when it is needed: most verbs do not, and start sooner."""
    return TypeAdapter(ExperimentAnswer)


class _NotYet(Exception):
    """It has not followed so far."""
