"""Makes the controller that fits a running deployment."""

import time
from collections.abc import Callable
from dataclasses import replace

from launcher.local.run_directory import RunDirectory
from launcher.operate.speculation.cap import k_of
from launcher.operate.speculation.controller import Controller, Options
from launcher.operate.speculation.journal import Journal, Memory
from launcher.operate.speculation.knowledge import Knowledge
from launcher.operate.speculation.metrics import Metrics
from launcher.operate.speculation.pools import Pools
from launcher.operate.speculation.restarting import Restarting
from launcher.operate.speculation.state import State
from launcher.operate.speculation.steer import SteerState
from launcher.operate.speculation.steering import Steering


def controller(
    directory: RunDirectory,
    pools: Pools,
    tuned: Knowledge,
    options: Options,
    metrics: Metrics,
    tell: Callable[[str], None],
) -> Controller[State] | Controller[SteerState]:
    """It steers where there is a plain pool, else it restarts engines; what it knew of this deployment it knows again.

    ``tuned``: what a tuning knows. Raises :class:`launcher.errors.RunDirectoryError` when nothing runs.
    """
    mark, now = directory.running().mark, time.time()
    journal = Journal(directory, pools.speculating)
    remembered = journal.remembered(mark)
    full = {each.name: each.argv for each in pools.engines} if remembered is None else remembered.full
    known = tuned if remembered is None else replace(remembered.known, tuned=tuned.tuned or remembered.known.tuned)
    state = None if remembered is None else remembered.state
    highest = max(map(k_of, full.values()))
    if pools.plain is None:
        restarts = state if isinstance(state, State) else State(highest, highest, now, highest)
        return Restarting(directory, Memory(mark, full, restarts, known), restarts, options, journal, metrics, tell)
    steers = state if isinstance(state, SteerState) else SteerState(highest, now)
    return Steering(directory, Memory(mark, full, steers, known), steers, options, journal, metrics, tell, pools)
