"""Can the proxy listen where clients shall find it? The engines' ports were chosen among free ones."""

import socket
from collections.abc import Iterator

from launcher.inventory import Inventory
from launcher.preflight.finding import Case, Fault, Layer, Rule


def _proxy(case: Case) -> Iterator[Fault]:
    """An address that cannot be had, and who has it."""
    proxy = case.plan.proxy
    yield from _address(proxy.host, proxy.port, "proxy", case.inventory)
    if proxy.admin is not None:
        yield from _address(*proxy.admin, "proxy.admin", case.inventory)


def _address(host: str, port: int, key: str, inventory: Inventory) -> Iterator[Fault]:
    if listener := inventory.listeners.get(port):
        who = f"pid {listener.pid} ({listener.command})" if listener.pid else listener.command
        yield Fault(
            f"{key}.port",
            f"port {port} for {'the proxy' if key == 'proxy' else key} is taken by {who}",
            f"stop it, or choose another with --set {key}.port={port + 1 if port < 65535 else port - 1}",
        )
    elif reason := _refusal(host, port):
        yield Fault(
            f"{key}.host", f"the proxy cannot listen on {host}:{port} ({reason})", f"change {key}.host or {key}.port"
        )


def _refusal(host: str, port: int) -> str | None:
    """Why an address cannot be bound, found out by doing it for a moment."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as exc:
        return getattr(exc, "strerror", None) or str(exc)
    return None


RULES = (Rule("ports/proxy", Layer.HOST, "the operating system", _proxy),)
