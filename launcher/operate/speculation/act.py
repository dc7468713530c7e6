"""Brings the engines of a running deployment to the draft tokens that were decided, one after the other."""

from collections.abc import Callable, Mapping, Sequence

from launcher.errors import RunDirectoryError
from launcher.local.restart import restart
from launcher.local.run_directory import RunDirectory
from launcher.operate.speculation.cap import argv_with, k_of
from launcher.plan import EngineInstance


def caps(directory: RunDirectory, full: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Of the engines that can speculate, as they run now; ``full``: their command lines as the profile has them."""
    return {engine.name: k_of(engine.argv) for engine in _engines(directory).values() if engine.name in full}


def bring(
    directory: RunDirectory,
    full: Mapping[str, Sequence[str]],
    wanted: Mapping[str, int],
    *,
    within: float,
    tell: Callable[[str], None],
) -> bool:
    """Each engine whose cap is another one is drained, started with the new one and proven, before the next one.

    Returns whether all are as ``wanted``; not so when one does not get rid of its requests ``within`` so many seconds.
    Raises a :class:`launcher.errors.LauncherError`; an engine that does not start is started as it was before.
    """
    for name, cap in wanted.items():
        engine = _engines(directory)[name]
        if k_of(engine.argv) == cap:
            continue
        argv = argv_with(full[name], cap, engine.role)
        if not restart(directory, [name], drain_first=True, within=within, tell=tell, argv={name: argv}):
            return False
    return True


def _engines(directory: RunDirectory) -> Mapping[str, EngineInstance]:
    plan = directory.read_plan()
    if plan is None:
        raise RunDirectoryError(f"the plan in {directory.path} cannot be read: start the deployment again")
    return {engine.name: engine for engine in plan.engines}
