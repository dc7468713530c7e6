"""Acts by restarts: each engine is drained and started with other draft tokens, one after the other."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from launcher.errors import LauncherError
from launcher.local.restart import nobody_else_answers
from launcher.operate.speculation import act
from launcher.operate.speculation.cap import k_of
from launcher.operate.speculation.controller import DONE, LATER, NOT_DONE, Controller
from launcher.operate.speculation.decide import after, counted, decide
from launcher.operate.speculation.observation import Window
from launcher.operate.speculation.state import Decision, State


class Restarting(Controller[State]):
    """Of engines that have nobody beside them who serves without speculation."""

    def caps(self) -> Mapping[str, int]:
        """As :class:`Controller`."""
        return act.caps(self.directory, self.memory.full)

    def decide(self, window: Window, now: float) -> Decision:
        """As :class:`Controller`."""
        known = self.memory.known
        for traffic in counted([window], self.options.policy, lambda each: each.cap == 0):
            assert traffic.tpot
            known = known.plus(traffic.batch, traffic.tpot)
        self.memory = replace(self.memory, known=known)
        return decide(self.state, self.windows, known, now, self.options.policy)

    def after(self, decision: Decision, now: float) -> State:
        """As :class:`Controller`."""
        return after(self.state, decision, self.windows, now, self.options.policy, next(iter(self.memory.full)))

    def is_settled(self) -> bool:
        """As :class:`Controller`."""
        return self._wanted(self.state) == self.caps()

    def tries(self) -> bool:
        """As :class:`Controller`."""
        return self.state.trial is not None

    async def do(self, then: State) -> str:
        """As :class:`Controller`."""
        wanted, now = self._wanted(then), self.caps()
        lonely = [
            name for name, cap in wanted.items() if now[name] != cap and nobody_else_answers(self.directory, name)
        ]
        if lonely and not self.options.allow_downtime:
            self.tell(
                f"{lonely[0]} cannot be restarted without failed requests, as nobody else answers meanwhile: give its "
                "role a second replica, or allow it by --allow-downtime"
            )
            return NOT_DONE
        try:
            is_done = await asyncio.to_thread(
                act.bring,
                *(self.directory, self.memory.full, wanted),
                within=self.options.drain_within,
                tell=self.tell,
            )
        except asyncio.CancelledError:
            self.tell("ends when the restarts that it has begun are done: no engine stays drained")
            raise
        except LauncherError as exc:
            self.tell(str(exc))
            return NOT_DONE
        return DONE if is_done else LATER

    def _wanted(self, state: State) -> dict[str, int]:
        """The cap of each engine."""
        return {
            name: min(k_of(argv), state.last if name == state.trial else state.cap)
            for name, argv in self.memory.full.items()
        }
