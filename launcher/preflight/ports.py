"""Can the proxy listen where clients shall find it? The engines' ports were chosen among free ones."""

import socket
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from launcher.command_line import json_of, options_of
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


def _events(case: Case) -> Iterator[Fault]:
    """Where engines publish events of their KV caches: each rank of each instance on a port of its own."""
    taken: dict[int, str] = {case.plan.proxy.port: "the proxy"}
    for engine in case.plan.engines:
        taken[engine.port] = engine.name
    for engine in case.plan.engines:
        options = options_of(engine.argv)
        width = int(options.get("data-parallel-size", "1"))
        key = case.key_of(engine, "engine_args.kv-events-config")
        for port in _ports_of_events(json_of(options.get("kv-events-config"))):
            for number in range(port, port + width):
                if number > _LAST:
                    yield Fault(key, f"port {number} of {engine.name} does not exist", f"choose one up to {_LAST}")
                elif number in taken:
                    what = f"{engine.name} publishes on port {number}, which {taken[number]} has"
                    yield Fault(key, what, "use one replica per role and another port for each role")
                elif listener := case.inventory.listeners.get(number):
                    yield Fault(key, f"port {number} is taken by {listener.command}", "stop it, or choose another")
                taken.setdefault(number, engine.name)


def _ports_of_events(config: Mapping[str, JsonValue]) -> Iterator[int]:
    if config.get("enable_kv_cache_events") is not True:
        return
    for key in ("endpoint", "replay_endpoint"):
        default = "tcp://*:5557" if key == "endpoint" else ""
        port = str(config.get(key) or default).rpartition(":")[2]
        if port.isdigit():
            yield int(port)


def _room(case: Case) -> Iterator[Fault]:
    """The proxy's address for operators must be another one than that for clients."""
    proxy = case.plan.proxy
    if proxy.admin is not None and proxy.admin[1] == proxy.port:
        yield Fault(
            "proxy.admin.port",
            f"{proxy.port} is also the port for clients (proxy.port)",
            "choose another port for proxy.admin",
        )


_LAST = 65535

RULES = (
    Rule(
        "ports/kv-events",
        Layer.STATIC,
        "vLLM 0.32: port of the endpoint + data parallel rank",
        _events,
        of_all_pools=True,
    ),
    Rule("ports/admin", Layer.STATIC, "the operating system", _room),
    Rule("ports/proxy", Layer.HOST, "the operating system", _proxy),
)
