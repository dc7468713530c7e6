"""``proxy --config FILE``: serves until it is told to stop. ``proxy --new-key NAME``: makes a client's key.

Exit codes: 2 wrong arguments, 3 wrong configuration, 4 the address cannot be had.
"""

import argparse
import gc
import logging
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from proxy.admission import Admission
from proxy.app import create_app
from proxy.config import ConfigError, load
from proxy.keys import new_key
from proxy.server import LAST_WORDS, Server

_BACKLOG = 2048
_KEEP_ALIVE = 75
"""Seconds; longer than clients and balancers keep idle connections, so that they close first."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    arguments = _parser().parse_args(argv)
    if arguments.new_key is not None:
        return _print_new_key(arguments.new_key)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        config = load(arguments.config)
        admission = Admission(config.settings.admission)
        app = create_app(config, arguments.config, admission)
    except ConfigError as exc:
        return _fail(str(exc), 3)
    host = arguments.host or config.settings.host
    port = config.settings.port if arguments.port is None else arguments.port
    try:
        listener = listen(host, port)
    except OSError as exc:
        return _fail(f"cannot listen on {host}:{port}: {exc.strerror}", 4)
    server = Server(
        uvicorn.Config(
            app,
            access_log=False,
            log_config=None,
            log_level=logging.WARNING,
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=LAST_WORDS,
            timeout_keep_alive=_KEEP_ALIVE,
        ),
        admission,
        config.settings.drain,
    )
    gc.freeze()  # the garbage collector would look through all that was imported, 20 ms each time
    with listener:
        server.run(sockets=[listener])
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="proxy", description="Serves a topology of vLLM instances as one OpenAI API.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", type=Path, metavar="FILE", help="serve by this configuration, JSON")
    what.add_argument("--new-key", metavar="NAME", help="make a key for a client of this name, print it and end")
    parser.add_argument("--host", help="instead of the configuration's")
    parser.add_argument("--port", type=int, help="instead of the configuration's")
    return parser


def _print_new_key(name: str) -> int:
    key, digest = new_key()
    sys.stdout.write(
        f"The client's key, which is kept nowhere:  {key}\n"
        f"For proxy.client_keys in the profile:     - {{name: {name}, sha256: {digest}}}\n"
    )
    return 0


def listen(host: str, port: int) -> socket.socket:
    """Listen on a TCP address.

    The socket names its protocol because asyncio turns Nagle's algorithm off only on such; every event of a stream
    would wait 40 ms for the client's acknowledgement of the one before.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"proxy: {message}\n")
    return code
