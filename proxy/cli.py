"""``proxy --config FILE``: serves until it is told to stop. ``proxy --new-key NAME``: makes a key of a client or an
operator. ``proxy --metrics``: explains the metrics.

Exit codes: 2 wrong arguments, 3 wrong configuration, 4 the address cannot be had, 5 workers keep dying.
"""

import argparse
import gc
import os
import resource
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from proxy.admission import Admission
from proxy.app import create_apps
from proxy.config import ConfigError, ProxyConfig, load
from proxy.exposition import FOLDER_VARIABLE, forget
from proxy.keys import engine_key, new_key
from proxy.log import begin as begin_log
from proxy.metrics_page import page
from proxy.overview.notes import PRESENT, Notes
from proxy.server import Server
from proxy.settings import Settings
from proxy.tls import server_context
from proxy.tracing import check as check_tracing
from proxy.workers import Workers

_BACKLOG = 2048


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    arguments = _parser().parse_args(argv)
    if arguments.new_key is not None:
        return _print_new_key(arguments.new_key)
    if arguments.metrics:
        sys.stdout.write(page())
        return 0
    _take_all_descriptors()
    try:
        config = load(arguments.config)
        begin_log(config.settings.log)
        with ExitStack() as opened:
            sockets = [opened.enter_context(listener) for listener in _listeners(arguments, config.settings)]
            if config.settings.workers > 1 and not arguments.inherit:
                return _supervise(arguments.config, config.settings, sockets)
            return _serve(arguments.config, config, sockets, _shared() if arguments.inherit else None)
    except ConfigError as exc:
        return _fail(str(exc), 3)
    except CannotListen as exc:
        return _fail(str(exc), 4)


def _take_all_descriptors() -> None:
    """Each request has two connections. Beyond the limit, often 1024, further clients are cut off in silence."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems refuse "unlimited"
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _serve(path: Path, config: ProxyConfig, sockets: Sequence[socket.socket], shared: Path | None) -> int:
    settings = config.settings
    admission = Admission(settings.admission)
    apps = create_apps(config, path, admission, shared)
    tls = None if settings.tls is None else server_context(settings.tls)
    public, *admin = sockets
    server = Server(apps, tls, admin[0] if admin else None, admission, linger=settings.linger, patience=settings.drain)
    gc.freeze()  # the garbage collector would look through all that was imported, 20 ms each time
    server.run(sockets=[public])
    return 0


def _supervise(path: Path, settings: Settings, sockets: Sequence[socket.socket]) -> int:
    engine_key(settings, os.environ)  # told here once, and not by every worker
    check_tracing(settings.tracing)
    if settings.tls is not None:
        server_context(settings.tls)
    descriptors = [listener.fileno() for listener in sockets]
    safe_path = ["-P"] if sys.flags.safe_path else []
    command = [sys.executable, *safe_path, "-m", "proxy", "--config", str(path), "--inherit", *map(str, descriptors)]
    with TemporaryDirectory(prefix="duet-metrics-") as folder:
        environ = {**os.environ, FOLDER_VARIABLE: folder}
        return Workers(command, settings.workers, descriptors, environ, partial(_forget, Path(folder))).run()


def _forget(folder: Path, pid: int) -> None:
    """A worker has ended: what it had counted stays, what it had in hand is gone."""
    forget(folder, pid)
    Notes(folder, PRESENT).forget(pid)


def _shared() -> Path:
    return Path(os.environ[FOLDER_VARIABLE])


def _listeners(arguments: argparse.Namespace, settings: Settings) -> Iterator[socket.socket]:
    """That of clients, and that of operators if they have their own."""
    if arguments.inherit:
        yield from (socket.socket(fileno=descriptor) for descriptor in arguments.inherit)
        return
    yield listen(arguments.host or settings.host, settings.port if arguments.port is None else arguments.port)
    if settings.admin is not None:
        yield listen(settings.admin.host, settings.admin.port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="proxy", description="Serves a topology of vLLM instances as one OpenAI API.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", type=Path, metavar="FILE", help="serve by this configuration, JSON")
    what.add_argument("--new-key", metavar="NAME", help="make a key for a client or an operator, print it and end")
    what.add_argument("--metrics", action="store_true", help="print what each metric means, in Markdown, and end")
    parser.add_argument("--host", help="instead of the configuration's")
    parser.add_argument("--port", type=int, help="instead of the configuration's")
    # How workers are started: descriptors of the sockets that they inherit.
    parser.add_argument("--inherit", type=int, nargs="+", default=[], help=argparse.SUPPRESS)
    return parser


def _print_new_key(name: str) -> int:
    key, digest = new_key()
    sys.stdout.write(
        f"The key, which is kept nowhere:  {key}\n"
        f"For proxy.client_keys in the profile, or proxy.admin_keys if it is an operator's:  "
        f"- {{name: {name}, sha256: {digest}}}\n"
    )
    return 0


class CannotListen(Exception):
    """An address is taken, or not one of this machine."""


def listen(host: str, port: int) -> socket.socket:
    """Listen on a TCP address; raises :class:`CannotListen`.

    The socket names its protocol because asyncio turns Nagle's algorithm off only on such; every event of a stream
    would wait 40 ms for the client's acknowledgement of the one before.
    """
    with ExitStack() as cleanup:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)[0]
            listener = cleanup.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except (OSError, UnicodeError) as exc:
            reason = getattr(exc, "strerror", None) or exc
            raise CannotListen(f"cannot listen on {host}:{port}: {reason}") from exc
        cleanup.pop_all()
    return listener


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"proxy: {message}\n")
    return code
