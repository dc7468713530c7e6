"""Acts by the shares of two pools, one that speculates and a plain one: nothing is restarted."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from launcher.errors import LauncherError, RunDirectoryError
from launcher.local import proxy_file
from launcher.local.run_directory import RunDirectory
from launcher.operate.speculation import act
from launcher.operate.speculation.controller import DONE, NOT_DONE, Controller, Options
from launcher.operate.speculation.journal import Journal, Memory
from launcher.operate.speculation.metrics import Metrics
from launcher.operate.speculation.observation import Window
from launcher.operate.speculation.pools import Pools
from launcher.operate.speculation.state import Decision
from launcher.operate.speculation.steer import SteerState, after_steering, decide_steering
from proxy.config import ProxyConfig
from proxy.pools import by_name
from proxy.split import Split

SPLIT = "speculation"
"""The id of the split."""


class Steering(Controller[SteerState]):
    """Of two pools that serve the same model."""

    def __init__(
        self,
        directory: RunDirectory,
        memory: Memory,
        state: SteerState,
        options: Options,
        journal: Journal,
        metrics: Metrics,
        tell: Callable[[str], None],
        pools: Pools,
    ) -> None:
        """As :class:`Controller`; ``pools`` have a plain one."""
        super().__init__(directory, memory, state, options, journal, metrics, tell)
        assert pools.plain is not None
        self._plain_engines = pools.plain_engines
        self._speculating, self._plain = by_name(pools.speculating), by_name(pools.plain)

    def caps(self) -> Mapping[str, int]:
        """As :class:`Controller`; of the engines of both pools."""
        return {**dict.fromkeys(self._plain_engines, 0), **act.caps(self.directory, self.memory.full)}

    def decide(self, window: Window, now: float) -> Decision:
        """As :class:`Controller`."""
        return decide_steering(self.state, self.windows, now, self.options.policy)

    def after(self, decision: Decision, now: float) -> SteerState:
        """As :class:`Controller`."""
        return after_steering(self.state, decision, self.windows, now, self.options.policy)

    def is_settled(self) -> bool:
        """As :class:`Controller`."""
        split = proxy_file.split(self.directory.proxy_config)
        return split is not None and split.id == SPLIT and split.shares == self._shares(self.state)

    def tries(self) -> bool:
        """As :class:`Controller`."""
        return self.state.prefers is None

    async def do(self, then: SteerState) -> str:
        """As :class:`Controller`; requests of one session stay together."""
        shares = self._shares(then)

        def changed(config: ProxyConfig) -> ProxyConfig:
            if config.split is not None and config.split.id != SPLIT:
                raise RunDirectoryError(
                    f"requests are split already, by {config.split.id}: end that first (`launcher ab stop`)"
                )
            return replace(config, split=Split(SPLIT, shares))

        try:
            await asyncio.to_thread(proxy_file.change, self.directory.proxy_config, changed)
        except LauncherError as exc:
            self.tell(str(exc))
            return NOT_DONE
        self.tell(", ".join(f"{pool}: {share:g} % of the requests" for pool, share in shares.items()))
        return DONE

    def _shares(self, state: SteerState) -> dict[str, float]:
        explore = self.options.policy.explore
        of = {None: 50.0, True: 100.0 - explore, False: explore}[state.prefers]
        return {self._speculating: of, self._plain: 100.0 - of}
