"""Watches the experiment of the split in force: adds up what requests show, keeps it, and ends it when it must."""

import asyncio
import logging
import time
from pathlib import Path

from proxy.experiment.answer import Ending, ExperimentAnswer
from proxy.experiment.folder import ExperimentFolder
from proxy.experiment.guards import guard
from proxy.experiment.judged import answer
from proxy.experiment.measured import Excluded, measured
from proxy.experiment.recent import Recent
from proxy.experiment.sums import ArmSums, Sums, total
from proxy.record import Outcome, Record
from proxy.split import Split
from proxy.splitter import Splitter

logger = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two looks."""


class Observer:
    """Of one process; the sums of all of them, through their files."""

    def __init__(self, splitter: Splitter, configuration: Path | None) -> None:
        """``configuration``: beside which the files lie."""
        self._splitter = splitter
        self._configuration = configuration
        self._split: Split | None = None
        self._folder = ExperimentFolder(None, "")
        self._own: Sums = {}
        self._changed = False
        self._ending: Ending | None = None
        self._recent = Recent()
        self.problem = ""

    def finished(self, record: Record, outcome: Outcome) -> None:
        """A request has ended."""
        split = self._splitter.split
        if split is None or split.experiment is None or record.split != split.id:
            return
        if record.arm is None or record.bucket is None:
            return
        if split.experiment.b == split.shadow and not (record.copied or record.arm == split.shadow):
            return  # copies are compared with what they are copies of, and with nothing else
        self._follow(split)
        arm = self._own.setdefault(record.arm, ArmSums())
        shown = measured(record, outcome, time.monotonic(), split.experiment)
        if isinstance(shown, Excluded):
            arm.exclude(shown)
        else:
            arm.add(record.bucket, shown)
        self._changed = True

    def compared(self, record: Record, *, same: bool) -> None:
        """The text of a copy, which this is the record of, was that of the original, or another one."""
        split = self._splitter.split
        if split is None or split.experiment is None or record.split != split.id or record.arm is None:
            return
        self._follow(split)
        arm = self._own.setdefault(record.arm, ArmSums())
        arm.same += same
        arm.other += not same
        self._changed = True

    async def run(self) -> None:
        """Look every second until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            self.look()

    def look(self) -> None:
        """Keep the own sums, and obey or end the experiment; what fails is logged once, and tried again."""
        self._follow(self._splitter.split)
        split = self._split
        if split is None or split.experiment is None:
            return
        self._keep()
        try:
            if self._ending is None:
                self._ending = self._folder.ended() or self._guard(split)
        except (OSError, ValueError) as exc:
            self._complain(exc)
        self._splitter.ended = self._ending is not None

    def document(self) -> ExperimentAnswer:
        """What is known now."""
        self.look()
        if self._split is None:
            return ExperimentAnswer()
        return answer(self._split, self._total(), self._ending, self.problem)

    def _follow(self, split: Split | None) -> None:
        """Begin anew when there is another experiment; the last one's sums are kept."""
        another = (split and split.id) != (self._split and self._split.id)
        if another:
            self._keep()
            self._own, self._ending, self._recent = {}, None, Recent()
            self._folder = ExperimentFolder(None if split is None else self._configuration, split.id if split else "")
        self._split = split

    def _keep(self) -> None:
        if not self._changed:
            return
        try:
            self._folder.write(self._own)
        except OSError as exc:
            self._complain(exc)
            return
        self._changed, self.problem = False, ""

    def _complain(self, exc: Exception) -> None:
        if str(exc) != self.problem:
            self.problem = str(exc)
            logger.error("the experiment is not kept as it should be: %s", exc)

    def _total(self) -> Sums:
        try:
            return total([self._own, *self._folder.others()])
        except (OSError, ValueError) as exc:
            self._complain(exc)
            return self._own

    def _guard(self, split: Split) -> Ending | None:
        experiment = split.experiment
        assert experiment is not None
        sums = self._total()
        arms = (experiment.a, experiment.b)
        a, b = (sums.get(arm, ArmSums()) for arm in arms)
        recent = self._recent.look(time.monotonic(), a, b)
        ending = guard(a, b, *recent, experiment)
        if ending is None:
            return None
        logger.warning("the experiment %s has ended, all goes to %s: %s", split.id, experiment.a, ending.reason)
        return self._folder.end(ending)
