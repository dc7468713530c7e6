"""Decision: profile + machine -> plan. Names, ports and devices are settled here and only here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from launcher import devices, engine_args
from launcher.about import about
from launcher.errors import PlanError
from launcher.fingerprint import fingerprints
from launcher.inventory import Inventory
from launcher.kv_transfer import CONNECTORS, ConnectorSetup, Engine
from launcher.paths import absolute
from launcher.plan import EngineInstance, Plan, PlannedFile, ProxyInstance, instance_name
from launcher.profile import Model, Ports, Profile, RoleSettings
from launcher.site import LOCAL, Site
from proxy import config as proxy_config
from proxy.config import Discovery, ProxyConfig
from proxy.settings import Objectives, Settings
from proxy.topology import ConnectorKind, Instance, Role, Topology

_LINGER = 5.0
"""Seconds in which a cluster's balancers notice that a proxy leaves: connections that are open stay where they are."""
CONFIG = "proxy.json"
"""The proxy's configuration, in the run directory."""
ENGINES_OF_RELEASE = "app.kubernetes.io/instance=@RELEASE@,duet/role"
"""Labels of the engines' pods; the chart puts the release's name in."""


def plan(profile: Profile, inventory: Inventory, *, name: str, run_directory: Path, site: Site = LOCAL) -> Plan:
    """What will run for ``profile`` on the machine of ``inventory``; pure, the same input gives the same bytes.

    Raises :class:`PlanError` when ports or devices run out, or pools cannot be there.
    """
    _refuse_pools(profile, site)
    model = model_reference(profile.model, inventory)
    served_name = profile.model.served_name or (profile.model.id or Path(model).name)
    engines = _engines(profile, inventory, served_name, run_directory, site)
    known = fingerprints(engines, inventory)
    hands_over = any(engine.role is Role.PREFILL for engine in engines)
    connector = profile.kv_transfer.connector if hands_over else None
    config_path = run_directory / CONFIG
    settings = _proxy_settings(profile, site)
    proxy = ProxyInstance(
        name="proxy",
        argv=(inventory.python, "-P", "-m", "proxy", "--config", str(config_path)),
        env={},
        host=settings.host,
        port=settings.port,
        tls=settings.tls is not None,
        admin=None if settings.admin is None else (settings.admin.host, settings.admin.port),
        drain=settings.linger + settings.drain,
        tracing=settings.tracing is not None,
    )
    config = ProxyConfig(
        topology=Topology(
            tuple(
                Instance(
                    each.name,
                    each.role,
                    each.url,
                    pool=each.pool,
                    bootstrap=_bootstrap(each, connector),
                    fingerprint=known[each.name],
                )
                for each in engines
                if site.one_machine
            ),
            connector,
        ),
        settings=settings,
        discovery=None if site.one_machine else Discovery(ENGINES_OF_RELEASE),
    )
    return Plan(
        profile=name,
        device=profile.device,
        model=model,
        served_name=served_name,
        connector=connector,
        checkpoint_scheme=profile.quantization.checkpoint_scheme,
        engines=engines,
        proxy=proxy,
        files=(
            PlannedFile(str(config_path), proxy_config.dump(config)),
            PlannedFile(str(config_path.with_name(proxy_config.ABOUT)), about(profile, name)),
        ),
        startup_timeout=profile.startup_timeout,
        kv_lease=profile.kv_transfer.lease if hands_over else 0,
        objectives={
            name: getattr(profile.objectives, name) if name in profile.objectives.model_fields_set else None
            for name in ("ttft", "tpot")
        },
        scaling={
            role: (settings.scaling.min_replicas, settings.scaling.max_replicas)
            for role, settings in profile.roles.items()
            if settings.scaling is not None
        },
    )


def _refuse_pools(profile: Profile, site: Site) -> None:
    if profile.pools and not site.one_machine:
        raise PlanError(
            "pools: they are for one machine; install one release for each pool, or take them away (pools: null)"
        )
    if profile.pools and profile.kv_transfer.connector is ConnectorKind.LMCACHE:
        raise PlanError(
            "kv_transfer.connector: pools of the same model would find each other's KV caches in one lmcache store, "
            "whatever their weights: choose another connector, or take pools away"
        )


def model_reference(model: Model, inventory: Inventory) -> str:
    """What engines are given as the model. One string for all: NIXL's handshake compares it."""
    if model.id is not None:
        return model.id
    if model.path is not None:
        return absolute(model.path, "model.path")
    return str(inventory.cache / "models" / str(model.bundled))


def _proxy_settings(profile: Profile, site: Site) -> Settings:
    settings = replace(profile.proxy, objectives=Objectives(ttft=profile.objectives.ttft))
    if site.one_machine:
        return settings
    admin = settings.admin and replace(settings.admin, host=site.listen)
    return replace(settings, host=site.listen, admin=admin, linger=max(settings.linger, _LINGER))


def _engines(
    profile: Profile, inventory: Inventory, served_name: str, run_directory: Path, site: Site
) -> tuple[EngineInstance, ...]:
    pools = profile.by_pool()
    total = sum(settings.replicas for each in pools.values() for _, settings in each.roles.items())
    room = _Room(
        share=max(1, inventory.cores // total) if site.one_machine else inventory.cores,
        taken={profile.proxy.port, *inventory.listeners},
        devices=devices.assign(profile, inventory) if site.one_machine else {},
    )
    if profile.proxy.admin is not None:
        room.taken.add(profile.proxy.admin.port)
    found: list[EngineInstance] = []
    for pool, each in pools.items():
        try:
            found += _engines_of(pool, each, inventory, served_name, run_directory, site, room)
        except PlanError as exc:
            raise (PlanError(f"pools.{pool}.{exc}") if pool else exc) from None
    return tuple(found)


@dataclass(slots=True)
class _Room:
    """What all engines of a machine share."""

    share: int
    """Cores of one engine."""
    taken: set[int]
    """Ports."""
    devices: Mapping[str, tuple[str, ...]]
    """Of each engine, by its name."""


def _engines_of(
    pool: str,
    profile: Profile,
    inventory: Inventory,
    served_name: str,
    run_directory: Path,
    site: Site,
    room: _Room,
) -> Iterator[EngineInstance]:
    model = model_reference(profile.model, inventory)
    for role, settings in profile.roles.items():
        if site.one_machine and settings.nodes > 1:
            raise PlanError(f"roles.{role}.nodes: {settings.nodes} machines make one instance in a cluster only")
        for number in range(settings.replicas if site.one_machine else 1):
            name = instance_name(role, pool, number) if site.one_machine else role.value
            mine = room.devices.get(name, ())
            # In a cluster each pod has its own.
            taken = room.taken if site.one_machine else set()
            port = _free_port(profile.ports, "engine", taken)
            side_port, setup = _connector(profile, role, settings, name, taken, run_directory, site, pool)
            options = engine_args.argv(
                profile,
                role,
                settings,
                model=model,
                served_name=served_name,
                host=site.listen,
                port=port,
                of_connector=setup.all_options() if setup else {},
            )
            cores = settings.cores or room.share
            env = engine_args.environment(profile, role, settings, name=name, cores=cores, devices=mine)
            if setup is not None:
                env = {**setup.env_defaults, **env, **setup.env}
            own = engine_args.COMMAND if settings.nodes > 1 else (inventory.python, *engine_args.ENGINE_MODULE)
            program = profile.engine_command or own
            yield EngineInstance(
                name=name,
                role=role,
                argv=(*program, *options),
                env=dict(sorted(env.items())),
                host=site.listen,
                port=port,
                side_channel_port=side_port,
                devices=mine,
                device_type=settings.device_type or devices.kind(mine, inventory),
                device_memory=devices.memory(settings.device_memory, settings.device_type, mine, inventory),
                secrets=_secrets(profile, settings),
                kv_cache_memory=settings.kv_cache_memory and int(settings.kv_cache_memory),
                pool=pool,
            )


def _bootstrap(engine: EngineInstance, connector: ConnectorKind | None) -> str | None:
    if engine.side_channel_port is None or connector is None or not CONNECTORS[connector].bootstraps:
        return None
    return f"http://{engine.host}:{engine.side_channel_port}"


def _connector(
    profile: Profile,
    role: Role,
    settings: RoleSettings,
    name: str,
    taken: set[int],
    run_directory: Path,
    site: Site,
    pool: str,
) -> tuple[int | None, ConnectorSetup | None]:
    """The first of an engine's ports for its connector, and the connector's setup; none if it is aggregated."""
    if role is Role.AGGREGATED:
        return None, None
    connector = CONNECTORS[profile.kv_transfer.connector]
    engine = Engine(name, role, settings, profile.device, site, None, run_directory, pool)
    if connector.ports is not None and role in connector.listeners:
        port = _free_port(profile.ports, connector.ports, taken, connector.width(engine))
        engine = replace(engine, port=port)
    setup = connector.setup(profile.kv_transfer, engine)
    given = {**dict.fromkeys(profile.env, "env"), **dict.fromkeys(settings.env, f"roles.{role}.env")}
    if own := next((variable for variable in setup.env if variable in given), None):
        raise PlanError(
            f"{given[own]}.{own}: Duet sets it itself, so that all instances fit together"
            + (f"; ports.{connector.ports} says where ports begin" if own.endswith("PORT") else "")
        )
    return engine.port, setup


def _secrets(profile: Profile, settings: RoleSettings) -> dict[str, Mapping[str, str]]:
    """Of the profile and the role, sorted; a file with its whole path."""
    return {
        name: {"env": each.env} if each.env else {"file": absolute(str(each.file), f"secrets.{name}.file")}
        for name, each in sorted({**profile.secrets, **settings.secrets}.items())
    }


def _free_port(ports: Ports, key: str, taken: set[int], width: int = 1) -> int:
    """The first of so many free ports in a row, from where the profile says; they are added to those taken."""
    first: int = getattr(ports, key)
    for port in range(first, 65536 - width + 1):
        row = range(port, port + width)
        if taken.isdisjoint(row):
            taken.update(row)
            return port
    what = "no free port" if width == 1 else f"no {width} free ports in a row"
    raise PlanError(f"ports.{key}: {what} from {first} to 65535: lower it")
