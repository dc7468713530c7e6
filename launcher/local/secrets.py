"""Reads the secrets that engines get as variables, from where the plan says they are, when an engine starts.


A reference is ``{"env": name}``, a variable of the launcher's own environment, or ``{"file": path}``, a file that holds
it and nothing else but perhaps a last line end.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from launcher.errors import SecretError

Reference = Mapping[str, str]


def check(secrets: Iterable[tuple[str, Mapping[str, Reference]]], environ: Mapping[str, str]) -> None:
    """Of instances, by their names: raises :class:`SecretError` with all that cannot be read, each once."""
    faults: dict[str, list[str]] = {}
    for name, references in secrets:
        for variable, reference in references.items():
            try:
                _read(variable, reference, environ)
            except SecretError as exc:
                faults.setdefault(str(exc), []).append(name)
    if faults:
        raise SecretError([f"{fault} (for {', '.join(names)})" for fault, names in faults.items()])


def reader(references: Mapping[str, Reference], environ: Mapping[str, str]) -> Callable[[], dict[str, str]]:
    """Reads these now, whenever it is called; raises :class:`SecretError`."""
    return lambda: {variable: _read(variable, reference, environ) for variable, reference in references.items()}


def _read(variable: str, reference: Reference, environ: Mapping[str, str]) -> str:
    if "env" in reference:
        return _not_empty(
            variable,
            environ.get(reference["env"], ""),
            f"the variable {reference['env']}",
            "set it where you start from",
        )
    path = reference["file"]
    fix = f"write the secret into {path}, readable for who starts this"
    try:
        text = Path(path).read_text()
    except (OSError, ValueError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is no text"
        raise SecretError([f"secret {variable}: the file {path} cannot be read: {why}: {fix}"]) from exc
    return _not_empty(variable, text.removesuffix("\n").removesuffix("\r"), f"the file {path}", fix)


def _not_empty(variable: str, text: str, source: str, fix: str) -> str:
    if not text or "\0" in text:
        fault = "has a zero byte" if text else "is not there or empty"
        raise SecretError([f"secret {variable}: {source} {fault}: {fix}"])
    return text
