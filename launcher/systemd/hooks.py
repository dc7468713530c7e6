"""What units call around their programs: ``free``, ``run`` and ``ready``. It needs nothing but this package.

``free DEVICE...`` waits until what an engine had there before is given back.
``run NAME=SOURCE... -- PROGRAM...`` becomes the program, with secrets as variables; a source is ``env:NAME`` or
``credential``, one of the service manager's.
``ready URL`` waits until the unit's main process answers.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import psutil

from launcher import machine
from launcher.errors import InstanceDiedError, LauncherError, NotReadyError
from launcher.local import scheduling, secrets
from launcher.local.device_memory import DeviceMemory
from launcher.local.readiness import ready

_LOOK = 0.5
"""Seconds between two looks whether the main process is still there."""


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Do it; the exit code."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, program = _parser().parse_args(arguments[:end]), arguments[end + 1 :]
    try:
        match options.hook:
            case "free":
                memory = DeviceMemory(machine.device_uses, lambda text: print(text, file=sys.stderr))  # noqa: T201
                asyncio.run(memory.given_back("it", options.devices, ()))
            case "run":
                _become(options.secrets, program, environ)
            case _:
                asyncio.run(_ready(options.url, options.within, int(environ["MAINPID"]), settle=options.settle))
    except LauncherError as exc:
        for message in exc.messages:
            print(f"error: {message}", file=sys.stderr)  # noqa: T201
        return exc.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    hooks = parser.add_subparsers(dest="hook", required=True)
    hooks.add_parser("free").add_argument("devices", nargs="+")
    hooks.add_parser("run").add_argument("secrets", nargs="+")
    answering = hooks.add_parser("ready")
    answering.add_argument("url")
    answering.add_argument("--within", type=float, required=True, help="seconds")
    answering.add_argument("--settle", action="store_true", help="share the cores well, for an engine on a CPU")
    return parser


def _become(sources: Sequence[str], program: Sequence[str], environ: Mapping[str, str]) -> None:
    folder = Path(environ.get("CREDENTIALS_DIRECTORY", "/nonexistent"))
    references = {}
    for source in sources:
        name, _, place = source.partition("=")
        by_variable = place.startswith("env:")
        references[name] = {"env": place.removeprefix("env:")} if by_variable else {"file": str(folder / name)}
    found = secrets.reader(references, environ)()
    os.execvpe(program[0], [*program], {**environ, **found})


async def _ready(url: str, within: float, main_pid: int, *, settle: bool) -> None:
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=5.0) as client:
        answers = asyncio.ensure_future(ready(client, url))
        try:
            async with asyncio.timeout(within):
                while not answers.done():
                    await asyncio.wait({answers}, timeout=_LOOK)
                    if not psutil.pid_exists(main_pid):
                        raise InstanceDiedError(f"process {main_pid} ended before it answered at {url}: see its log")
        except TimeoutError as exc:
            raise NotReadyError(
                f"nothing answers at {url} after {within:.0f} s: raise startup_timeout, or look into its log"
            ) from exc
        finally:
            answers.cancel()
    if settle:
        await scheduling.settle(os.getpgid(main_pid))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
