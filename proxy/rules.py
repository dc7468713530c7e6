"""The rules of pools with what they need to remember: how requests of the same task went."""

from collections.abc import Iterable

from proxy.acceptance import Acceptance
from proxy.completion import Completion
from proxy.pools import PoolSettings
from proxy.record import Outcome, Record
from proxy.routing import Route, Router
from proxy.task import task_of


class Rules:
    """Of some settings."""

    def __init__(self, settings: PoolSettings) -> None:
        asks = any(rule.when.expected_acceptance is not None for rule in settings.rules)
        self._acceptance = Acceptance(settings.explore) if asks else None
        self._task_header = settings.task_header.lower().encode()
        self._router = Router(settings, self._acceptance)

    def route(self, completion: Completion, headers: Iterable[tuple[bytes, bytes]], record: Record) -> Route:
        """Where a request goes; the record is told its task where a rule asks for that."""
        if self._acceptance is not None:
            record.task = task_of(completion, headers, self._task_header, record.client)
        return self._router.route(completion, headers, record.task)

    def finished(self, record: Record, outcome: Outcome) -> None:
        """A request has ended."""
        if self._acceptance is not None and record.task is not None and record.drafted is not None:
            self._acceptance.add(record.task, record.drafted)
