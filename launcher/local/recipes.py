"""Decision: a plan as recipes."""

from collections.abc import Iterator, Mapping

from launcher.local import secrets
from launcher.local.child import Command
from launcher.local.deployment import PROXY
from launcher.local.recipe import Recipe
from launcher.local.run_directory import RunDirectory
from launcher.plan import Plan
from launcher.profile import Device

PROXY_MARGIN = 4.0
"""Seconds that the proxy needs to end when the time of its requests is up: for last words, and for its last spans."""
ENGINE_GRACE = 4.0
PROXY_START_BUDGET = 30.0


def engine_recipes(plan: Plan, directory: RunDirectory, environ: Mapping[str, str], mark: str) -> Iterator[Recipe]:
    """Of the engines; ``environ`` is the launcher's, ``mark`` the deployment's."""
    # Kubernetes sets VLLM_PORT to an address where a service is called vllm, and vLLM takes it for its own port.
    environ = {name: value for name, value in environ.items() if name != "VLLM_PORT"}
    for engine in plan.engines:
        yield Recipe(
            name=engine.name,
            role=engine.role,
            url=engine.url,
            ready_path="/health",
            command=Command(
                engine.argv,
                {**environ, **engine.env},
                directory.log(engine.name),
                ENGINE_GRACE,
                f"{mark}/{engine.name}",
            ),
            start_budget=plan.startup_timeout,
            on_cpu=plan.device is Device.CPU,
            devices=frozenset(engine.devices),
            secrets=secrets.reader(engine.secrets, environ),
        )


def proxy_recipe(plan: Plan, directory: RunDirectory, environ: Mapping[str, str], mark: str) -> Recipe:
    """Of the proxy."""
    proxy = plan.proxy
    return Recipe(
        name=proxy.name,
        role=PROXY,
        url=proxy.operators_url,
        ready_path="/ready",
        command=Command(
            proxy.argv, {**environ, **proxy.env}, directory.log(proxy.name), proxy_grace(plan), f"{mark}/{proxy.name}"
        ),
        start_budget=PROXY_START_BUDGET,
    )


def proxy_grace(plan: Plan) -> float:
    """Seconds that the proxy has to end."""
    return plan.proxy.drain + PROXY_MARGIN
