"""Options and arguments that several commands take."""

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import httpx
import platformdirs
import typer

from launcher.errors import RunDirectoryError
from launcher.preflight.finding import Finding


class Output(StrEnum):
    """How a reading command prints."""

    TEXT = "text"
    JSON = "json"


def _default_run_directory() -> Path:
    try:
        return Path(platformdirs.user_state_dir("duet")) / "run"
    except RuntimeError as exc:  # neither HOME nor an entry in the user database
        raise RunDirectoryError(f"{exc} Name the run directory with --run-dir") from exc


ProfileArgument = Annotated[str, typer.Argument(metavar="PROFILE", help="A shipped name (see `list`) or a path.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY.PATH=VALUE", help="Override one value of the profile.")
]
ModelOption = Annotated[Path | None, typer.Option("--model", help="Serve this Hugging Face folder instead.")]
OutputOption = Annotated[Output, typer.Option("--output", help="Text for people or JSON for programs.")]
RunDirectoryOption = Annotated[
    Path,
    typer.Option(
        "--run-dir",
        envvar="DUET_RUN_DIR",
        default_factory=_default_run_directory,
        show_default="in the user's state folder",
        help="Where a deployment keeps state and logs.",
    ),
]
InstancesArgument = Annotated[list[str], typer.Argument(metavar="INSTANCE...", help="E.g. decode-0.")]


def with_model(overrides: list[str] | None, model: Path | None) -> list[str]:
    """What ``--set`` and ``--model`` together override."""
    if model is None:
        return overrides or []
    path = f"model.path={json.dumps(str(model.absolute()))}"
    return [*(overrides or []), "model.bundled=null", "model.id=null", "model.revision=null", path]


def address(url: str, meant: str) -> str:
    """Of a server, without a slash at its end; raises :class:`typer.BadParameter` when it is none.

    ``meant``: whose it is. What stands before an ``@`` may be a password, so it is not shown.
    """
    example = f"write {meant} address, e.g. http://127.0.0.1:8000"
    if "@" in url:
        raise typer.BadParameter(f"{example}, without a name or a password: a key is given with --key")
    try:
        parsed = httpx.URL(url)
        is_whole = parsed.scheme in {"http", "https"} and parsed.host and 0 < (parsed.port or 80) < 65536
        fits = is_whole and not (parsed.query or parsed.fragment)
    except (httpx.InvalidURL, UnicodeError):
        fits = False
    if not fits:
        raise typer.BadParameter(f"{example}, not {url!r}")
    return url.rstrip("/")


def bearer(key: str | None) -> dict[str, str]:
    """The header that shows a key; raises :class:`typer.BadParameter`, which does not tell it."""
    if key is None:
        return {}
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise typer.BadParameter("--key is empty, or has letters that no key has: give it as `proxy --new-key` told it")
    return {"authorization": f"Bearer {key}"}


def name_of(profile: str) -> str:
    """What a deployment of this shipped name or path is called."""
    return Path(profile).stem


def warn(findings: Iterable[Finding]) -> None:
    """Tell what preflight found, on standard error."""
    for finding in findings:
        typer.echo(f"{finding.fault.severity}: {finding.fault.message}", err=True)
