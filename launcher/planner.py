"""Decision: profile + machine -> plan. Names, ports and devices are settled here and only here."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from launcher import engine_args, kv_transfer
from launcher.errors import PlanError
from launcher.fingerprint import fingerprints
from launcher.inventory import Inventory
from launcher.plan import EngineInstance, Plan, PlannedFile, ProxyInstance
from launcher.profile import Device, Model, Profile
from proxy import config as proxy_config
from proxy.config import ProxyConfig
from proxy.topology import Instance, Role, Topology

_HOST = "127.0.0.1"  # engines have no authentication: only the proxy is reachable from outside


def plan(profile: Profile, inventory: Inventory, *, name: str, run_directory: Path) -> Plan:
    """What will run for ``profile`` on the machine of ``inventory``; pure, the same input gives the same bytes.

    Raises :class:`PlanError` when ports or devices run out.
    """
    model = model_reference(profile.model, inventory)
    served_name = profile.model.served_name or (profile.model.id or Path(model).name)
    engines = _engines(profile, inventory, model, served_name)
    known = fingerprints(engines, inventory)
    config_path = run_directory / "proxy.json"
    settings = profile.proxy
    proxy = ProxyInstance(
        name="proxy",
        argv=(inventory.python, "-P", "-m", "proxy", "--config", str(config_path)),
        env={},
        host=settings.host,
        port=settings.port,
        tls=settings.tls is not None,
        admin=None if settings.admin is None else (settings.admin.host, settings.admin.port),
        drain=settings.drain,
        tracing=settings.tracing is not None,
    )
    config = ProxyConfig(
        topology=Topology(
            tuple(Instance(each.name, each.role, each.url, fingerprint=known[each.name]) for each in engines),
            profile.kv_transfer.connector if profile.roles.prefill else None,
        ),
        settings=settings,
    )
    return Plan(
        profile=name,
        device=profile.device,
        model=model,
        served_name=served_name,
        checkpoint_scheme=profile.quantization.checkpoint_scheme,
        engines=engines,
        proxy=proxy,
        files=(PlannedFile(str(config_path), proxy_config.dump(config)),),
        startup_timeout=profile.startup_timeout,
        kv_lease=profile.kv_transfer.lease if profile.roles.prefill else 0,
    )


def model_reference(model: Model, inventory: Inventory) -> str:
    """What engines are given as the model. One string for all: NIXL's handshake compares it."""
    if model.id is not None:
        return model.id
    if model.path is not None:
        try:
            return str(model.path.expanduser().absolute())
        except RuntimeError as exc:
            raise PlanError(f"model.path {model.path}: {exc}") from exc
    return str(inventory.cache / "models" / str(model.bundled))


def _engines(profile: Profile, inventory: Inventory, model: str, served_name: str) -> tuple[EngineInstance, ...]:
    total = sum(settings.replicas for _, settings in profile.roles.items())
    cores = max(1, inventory.cores // total)
    taken = {profile.proxy.port, *inventory.listeners}
    if profile.proxy.admin is not None:
        taken.add(profile.proxy.admin.port)
    ports = _free_ports(profile.ports.engine, taken)
    side_ports = _free_ports(profile.ports.side_channel, taken)
    gpus = count()
    engines = []
    for role, settings in profile.roles.items():
        for number in range(settings.replicas):
            devices = _devices(profile.device, settings.tensor_parallel, gpus)
            port = next(ports)
            side_port = None if role is Role.AGGREGATED else next(side_ports)
            options = engine_args.argv(
                profile, role, settings, model=model, served_name=served_name, host=_HOST, port=port
            )
            env = engine_args.environment(profile, settings, name=f"{role}-{number}", cores=cores, gpus=devices)
            if side_port is not None:
                setup = kv_transfer.setup(profile.kv_transfer, role, profile.device, _HOST, side_port)
                options = (*options, "--kv-transfer-config", setup.config)
                env = {**setup.env, **env}
            program = profile.engine_command or (inventory.python, *engine_args.ENGINE_MODULE)
            engines.append(
                EngineInstance(
                    name=f"{role}-{number}",
                    role=role,
                    argv=(*program, *options),
                    env=dict(sorted(env.items())),
                    host=_HOST,
                    port=port,
                    side_channel_port=side_port,
                    gpus=devices,
                    kv_cache_memory=settings.kv_cache_memory and int(settings.kv_cache_memory),
                )
            )
    return tuple(engines)


def _devices(device: Device, number: int, indices: Iterator[int]) -> tuple[int, ...]:
    return tuple(next(indices) for _ in range(number)) if device is Device.CUDA else ()


def _free_ports(first: int, taken: set[int]) -> Iterator[int]:
    """The ports from ``first`` up that are not in ``taken``; each one handed out is added to it."""
    for port in range(first, 65536):
        if port not in taken:
            taken.add(port)
            yield port
    raise PlanError(f"no free port from {first} to 65535: lower ports.engine or ports.side_channel")
