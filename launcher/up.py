"""The story of `launcher up`: hold the run directory, look at the machine, plan, check, run."""

from collections.abc import Awaitable, Callable, Mapping

import httpx

from launcher import machine, planner, preflight
from launcher.bundled.prepare import prepare
from launcher.errors import StateError
from launcher.local.leftovers import wait_until_gone
from launcher.local.run_directory import RunDirectory
from launcher.local.supervisor import Reporter, Supervisor
from launcher.plan import Plan
from launcher.preflight.finding import Case
from launcher.profile import Profile
from launcher.weights import with_weights

OnceReady = Callable[[Plan, httpx.AsyncClient], Awaitable[bool]]


async def up(
    profile: Profile,
    *,
    name: str,
    directory: RunDirectory,
    environ: Mapping[str, str],
    reporter: Reporter,
    tell: Callable[[str], None],
    once_ready: OnceReady,
) -> bool:
    """Run ``profile`` until a signal, or until ``once_ready`` returns ``False``; whether it was ready.

    Raises a :class:`launcher.errors.LauncherError`; then nothing of it runs.
    """
    with directory.hold():
        try:
            await wait_until_gone(directory.read_state())
        except StateError as exc:  # we hold the lock, so nobody needs it any more
            tell(f"warning: {exc}")
        inventory = machine.look(environ)
        plan = planner.plan(profile, inventory, name=name, run_directory=directory.path)
        if profile.model.bundled:
            case = Case(profile, plan, inventory, environ)
            preflight.refuse([*preflight.judge(case, with_model=False)])  # before a download
            prepare(profile.model.bundled, inventory.cache, tell)
        inventory = with_weights(inventory, plan, environ)
        plan = planner.plan(profile, inventory, name=name, run_directory=directory.path)
        findings = [*preflight.judge(Case(profile, plan, inventory, environ))]
        preflight.refuse(findings)
        for finding in findings:
            tell(f"warning: {finding.fault.message}")
        # No proxy from the environment: all addresses are on this machine. Nor is a certificate verified, which is for
        # the name that clients use.
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=httpx.Timeout(5.0, read=120.0)) as client:
            supervisor = Supervisor(plan, directory, environ, client, reporter)
            return await supervisor.run(lambda: once_ready(plan, client))
