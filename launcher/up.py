"""The story of `launcher up`: hold the run directory, look at the machine, plan, check, run."""

from collections.abc import Awaitable, Callable, Collection, Mapping

import httpx

from launcher import machine, planner, preflight
from launcher.bundled.prepare import prepare
from launcher.errors import StateError
from launcher.loader import Resolved
from launcher.local import secrets
from launcher.local.leftovers import wait_until_gone
from launcher.local.run_directory import RunDirectory
from launcher.local.supervisor import Reporter, Supervisor
from launcher.plan import Plan
from launcher.preflight.examine import of_engine
from launcher.preflight.finding import Case, Layer
from launcher.settle import settle
from launcher.sized import SizedReporter, planned_sizes

OnceReady = Callable[[Plan, httpx.AsyncClient], Awaitable[bool]]


async def up(
    resolved: Resolved,
    *,
    name: str,
    directory: RunDirectory,
    environ: Mapping[str, str],
    reporter: Reporter,
    tell: Callable[[str], None],
    once_ready: OnceReady,
    layers: Collection[Layer] = frozenset(Layer),
) -> bool:
    """Run a profile until a signal, or until ``once_ready`` returns ``False``; whether it was ready.

    Before that the rules of ``layers`` are asked. Raises a :class:`launcher.errors.LauncherError`; then nothing of it
    runs.
    """
    with directory.hold():
        try:
            await wait_until_gone(directory.read_state())
        except StateError as exc:  # we hold the lock, so nobody needs it any more
            tell(f"warning: {exc}")
        profile = resolved.profile
        inventory = machine.look(environ)
        plan = planner.plan(profile, inventory, name=name, run_directory=directory.path)
        secrets.check(((engine.name, engine.secrets) for engine in plan.engines), environ)
        if bundled := {model for each in profile.by_pool().values() if (model := each.model.bundled)}:
            case = Case(profile, plan, inventory, environ, resolved.document)
            preflight.refuse([*preflight.judge(case, layers, with_model=False)])  # before a download
            for model in bundled:
                prepare(model, inventory.cache, tell)
        plan, inventory = settle(profile, inventory, name=name, run_directory=directory.path, environ=environ)
        case = Case(profile, plan, inventory, environ, resolved.document)
        findings = [*preflight.judge(case, layers)]
        preflight.refuse(findings)
        for finding in findings:
            tell(f"warning: {finding.fault.message}")
        if Layer.ENGINE in layers:
            preflight.refuse(of_engine(case)[0])
        # No proxy from the environment: all addresses are on this machine. Nor is a certificate verified, which is for
        # the name that clients use.
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=httpx.Timeout(5.0, read=120.0)) as client:
            sized = SizedReporter(reporter, planned_sizes(plan, inventory, directory.path, environ), directory, tell)
            supervisor = Supervisor(plan, directory, environ, client, sized)
            return await supervisor.run(lambda: once_ready(plan, client))
