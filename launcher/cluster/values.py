"""Decision: profile + its plan for a cluster -> the values of the Helm chart. The chart computes nothing."""

import math
from collections.abc import Mapping
from pathlib import PurePath

import yaml

from launcher import planner
from launcher.bundled.catalogue import CATALOGUE
from launcher.cluster import budgets
from launcher.fingerprint import fingerprints
from launcher.kv_transfer import CONNECTORS
from launcher.plan import EngineInstance, Plan
from launcher.profile import Device, Profile, RoleSettings
from launcher.profile.kv_transfer import FILE_CONNECTORS
from launcher.site import CLUSTER, POD, POD_FOLDER
from proxy.config import ABOUT

VERSION = 1
"""Of the shape below; the chart refuses another one."""
_GPU = "nvidia.com/gpu"


def for_cluster(profile: Profile) -> Profile:
    """The same profile where each machine fetches its model itself: a bundled one from the hub."""
    if profile.model.bundled is None:
        return profile
    of_hub = {"bundled": None, "id": CATALOGUE[profile.model.bundled].hub_id}
    return profile.model_copy(update={"model": profile.model.model_copy(update=of_hub)})


def plan_for_cluster(profile: Profile, name: str) -> Plan:
    """With one engine of each role; raises :class:`launcher.errors.PlanError`."""
    return planner.plan(for_cluster(profile), POD, name=name, run_directory=POD_FOLDER, site=CLUSTER)


def values(profile: Profile, name: str) -> dict[str, object]:
    """What the chart installs, JSON-able, below the key ``plan``; raises :class:`launcher.errors.PlanError`."""
    profile = for_cluster(profile)
    plan = plan_for_cluster(profile, name)
    files = {PurePath(file.path).name: file.content for file in plan.files}
    facts = fingerprints(plan.engines, POD)
    settings = profile.proxy
    return {
        "plan": {
            "version": VERSION,
            "profile": plan.profile,
            "description": profile.description,
            "device": plan.device.value,
            "model": {
                "name": plan.model,
                "revision": profile.model.revision,
                "source": "hub" if profile.model.id is not None else "path",
            },
            "servedName": plan.served_name,
            "connector": None if plan.connector is None else plan.connector.value,
            "sharedFolder": _shared_folder(profile, plan),
            "engines": {
                engine.role.value: _engine(engine, profile, plan, facts[engine.name]) for engine in plan.engines
            },
            "proxy": {
                "port": settings.port,
                "adminPort": None if settings.admin is None else settings.admin.port,
                "tls": settings.tls is not None,
                "terminationGracePeriodSeconds": math.ceil(plan.proxy.drain) + budgets.PROXY_END,
                "variables": [] if settings.engine_key_env is None else [settings.engine_key_env],
                "config": files[planner.CONFIG],
                "about": files[ABOUT],
            },
        }
    }


def to_yaml(document: Mapping[str, object]) -> str:
    """As a file of values for people to read: texts of several lines as such."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _engine(engine: EngineInstance, profile: Profile, plan: Plan, facts: Mapping[str, str]) -> dict[str, object]:
    settings = dict(profile.roles.items())[engine.role]
    limits = budgets.of(engine, plan, profile.proxy)
    program = engine.argv.index("--model")  # the first of its options
    options = engine.argv[program:]
    return {
        "replicas": settings.replicas,
        "scaling": settings.scaling and {"min": settings.scaling.min_replicas, "max": settings.scaling.max_replicas},
        "nodes": settings.nodes,
        "command": list(engine.argv[:program]),
        "args": list(options),
        "workerArgs": _of_worker(options) if settings.nodes > 1 else None,
        "env": dict(engine.env),
        "secrets": sorted(engine.secrets),
        "port": engine.port,
        **_side_channel(engine, profile, settings),
        "devices": _devices(profile, settings),
        "cores": settings.cores or (POD.cores if profile.device is Device.CPU else None),
        "facts": {str(fact): value for fact, value in facts.items()},
        "startup": {"periodSeconds": budgets.LOOK, "failureThreshold": limits.looks},
        "progressDeadlineSeconds": limits.progress,
        "drainSeconds": limits.drain,
        "terminationGracePeriodSeconds": limits.grace,
    }


def _side_channel(engine: EngineInstance, profile: Profile, settings: RoleSettings) -> dict[str, object]:
    if engine.side_channel_port is None:
        return {"sideChannel": None, "bootstrap": False}
    connector = CONNECTORS[profile.kv_transfer.connector]
    width = settings.data_parallel if connector.ports == "side_channel" else 1
    return {
        "sideChannel": {"port": engine.side_channel_port, "count": width},
        "bootstrap": connector.bootstraps,
    }


def _devices(profile: Profile, settings: RoleSettings) -> dict[str, object] | None:
    if profile.device is Device.CPU:
        return None
    return {"resource": _GPU, "count": settings.devices_per_instance // settings.nodes}


def _of_worker(options: tuple[str, ...]) -> list[str]:
    """Of the other machines of an instance: they serve no HTTP."""
    own = list(options)
    own[own.index("--node-rank") + 1] = "$(LWS_WORKER_INDEX)"
    return [*own, "--headless"]


def _shared_folder(profile: Profile, plan: Plan) -> str | None:
    """Where a connector writes files that both roles need."""
    given = profile.kv_transfer.shared_storage
    if plan.connector not in FILE_CONNECTORS:
        return None
    return str(POD_FOLDER / "kv" if given is None or given.path is None else given.path)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines in literal style, lists indented, nothing referred to by anchors."""

    def ignore_aliases(self, data: object) -> bool:
        """A reader should not have to look elsewhere."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Of lists, too."""
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
