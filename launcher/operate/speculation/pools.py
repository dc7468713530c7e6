"""Which pools of a running deployment speculate, and whether a plain one of the same model stands beside."""

from collections.abc import Iterable
from dataclasses import dataclass

from launcher.command_line import options_of
from launcher.errors import RunDirectoryError
from launcher.local.restart import ANSWERING
from launcher.local.run_directory import RunDirectory
from launcher.operate.speculation.cap import k_of
from launcher.operate.speculation.journal import Journal
from launcher.plan import EngineInstance
from proxy.pools import by_name


@dataclass(frozen=True, slots=True)
class Pools:
    """By :attr:`proxy.topology.Instance.pool`."""

    speculating: str
    engines: tuple[EngineInstance, ...]
    """Of it, those that generate and speculate, as they run now."""
    plain: str | None
    """One that serves the same model without; ``None`` when there is none, or several."""
    plain_engines: tuple[str, ...]
    """Their names."""


def look(directory: RunDirectory, wanted: str | None) -> Pools:
    """``wanted``: the name of the pool that speculates, where several do.

    Raises :class:`RunDirectoryError` when there is none, or it is not clear which.
    """
    deployment, plan = directory.running(), directory.read_plan()
    generating = [] if plan is None else [each for each in plan.engines if each.role in ANSWERING]
    memories = [Journal(directory, pool).remembered(deployment.mark) for pool in {each.pool for each in generating}]
    were = {name for memory in memories if memory is not None for name in memory.full}
    speculating = [each for each in generating if k_of(each.argv) or each.name in were]
    pool = _chosen(directory, dict.fromkeys(each.pool for each in speculating), wanted)
    engines = tuple(each for each in speculating if each.pool == pool)
    busy = {each.pool for each in speculating}
    beside = [each for each in generating if each.pool not in busy and _model(each) == _model(engines[0])]
    others = [*dict.fromkeys(each.pool for each in beside)]
    plain = others[0] if len(others) == 1 else None
    return Pools(pool, engines, plain, tuple(each.name for each in beside if each.pool == plain))


def _chosen(directory: RunDirectory, pools: Iterable[str], wanted: str | None) -> str:
    named = {by_name(pool): pool for pool in pools}
    if not named:
        raise RunDirectoryError(
            f"no engine in {directory.path} speculates: set `speculation` in the profile, e.g. by "
            "`launcher tune speculation`, and start it again"
        )
    if wanted is not None and wanted not in named:
        raise RunDirectoryError(f"no pool {wanted} speculates; these do: {', '.join(named)}")
    if wanted is None and len(named) > 1:
        raise RunDirectoryError(f"several pools speculate: name one with --pool: {', '.join(named)}")
    return next(iter(named.values())) if wanted is None else named[wanted]


def _model(engine: EngineInstance) -> str | None:
    return options_of(engine.argv).get("model")
