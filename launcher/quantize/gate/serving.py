"""Serves one model by vLLM, in the same way for both sides of a comparison."""

import asyncio
import os
import socket
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from launcher import machine, planner
from launcher.errors import QuantizeError
from launcher.inventory import Inventory
from launcher.local.device_memory import DeviceMemory
from launcher.local.recipe import Recipe
from launcher.local.recipes import engine_recipes
from launcher.local.run_directory import RunDirectory
from launcher.local.runner import Runner, Surroundings
from launcher.local.turns import Turns
from launcher.plan import Plan
from launcher.quantize.gate.settings import Serving, profile_of

_LAST_BREATH = 10.0
"""Seconds in which an engine that does not answer any more may turn out to have ended."""
_PROBE = 5.0
"""Seconds for one answer to whether it is ready."""


@asynccontextmanager
async def serve(
    model: Path, serving: Serving, log: Path, environ: Mapping[str, str] = os.environ
) -> AsyncIterator[str]:
    """The address of one engine with the model in this folder; afterwards the engine is gone, whatever happens.

    It is named :data:`launcher.quantize.gate.settings.NAME` and writes to the file ``log``. Raises
    :class:`InstanceDiedError` when it ends by itself, also later than its start, :class:`NotReadyError` when it is not
    ready in time, :class:`PlanError` when this machine cannot serve it, :class:`QuantizeError` without a log.
    """
    recipe = await asyncio.to_thread(_recipe, model, serving, log, environ)
    async with httpx.AsyncClient(trust_env=False, timeout=_PROBE) as client:
        turns, memory = Turns({recipe.name: recipe.devices}), DeviceMemory(machine.device_uses, lambda _: None)
        runner = Runner(recipe, Surroundings(client, turns, memory, lambda: None, _never_again))
        try:
            await runner.start()
            ended = asyncio.ensure_future(runner.end())
            try:
                yield recipe.url
            except QuantizeError as exc:  # maybe because the engine has just ended
                await asyncio.wait({ended}, timeout=_LAST_BREATH)
                if ended.done():
                    raise ended.result() from exc
                raise
            finally:
                ended.cancel()
        finally:
            await runner.stop()


def plan(model: Path, serving: Serving, inventory: Inventory, run_directory: Path = Path()) -> Plan:
    """The one engine; raises :class:`PlanError` when this machine cannot serve it."""
    return planner.plan(profile_of(model, serving, _free_port()), inventory, name="gate", run_directory=run_directory)


def _recipe(model: Path, serving: Serving, log: Path, environ: Mapping[str, str]) -> Recipe:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
    except OSError as exc:
        raise QuantizeError(f"cannot write the engine's log {log}: {exc.strerror}") from exc
    planned = plan(model, serving, machine.look(environ), log.parent)
    (recipe,) = engine_recipes(planned, RunDirectory(log.parent), environ, uuid.uuid4().hex)
    return replace(recipe, command=replace(recipe.command, log=log))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _never_again(_: str) -> None:
    """A comparison does not start an engine a second time."""
