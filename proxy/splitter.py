"""The split that is in force: what the configuration says of it, until its experiment ends by itself."""

from collections.abc import Mapping
from dataclasses import replace

from proxy.arms import Arms, Headers, bucket_of, key_of
from proxy.completion import Completion
from proxy.config import ProxyConfig
from proxy.pools import MAIN
from proxy.record import Record
from proxy.routing import Route
from proxy.split import Split


class Splitter:
    """Divides the requests that no rule has taken."""

    def __init__(self, config: ProxyConfig) -> None:
        self._session_header = config.settings.selection.session_header.lower().encode()
        self.split: Split | None = None
        self.ended = False
        """Whether a guard has ended the split's experiment: then all of its requests go to arm A."""
        self._arms: Arms | None = None
        self.follow(config)

    def follow(self, config: ProxyConfig) -> None:
        """Take another configuration's split over."""
        if config.split == self.split:
            return
        if config.split is None or self.split is None or config.split.id != self.split.id:
            self.ended = False
        self.split = config.split
        self._arms = None if config.split is None else Arms(config.split)

    def route(self, route: Route, completion: Completion, headers: Headers, record: Record) -> Route:
        """Where a request goes that the rules would send by ``route``; the record is told its arm."""
        split, arms = self.split, self._arms
        if split is None or arms is None or route.by_rule:
            return route
        if self.ended and split.experiment is not None:
            return replace(route, pool=_pool(split.experiment.a))
        key = key_of(
            *(split.by, completion, headers),
            session_header=self._session_header,
            client=record.client,
            request=record.id.internal,
        )
        record.split, record.bucket = split.id, bucket_of(split.salt, key)
        record.arm = arms.of(record.bucket)
        return replace(route, pool=_pool(record.arm))

    @property
    def shares(self) -> Mapping[str, float]:
        """In percent, by arm, as they are in force; empty without a split."""
        if self.split is None:
            return {}
        if self.ended and self.split.experiment is not None:
            return {arm: 100.0 if arm == self.split.experiment.a else 0.0 for arm in self.split.shares}
        return self.split.shares

    def copied_to(self, record: Record) -> str | None:
        """The pool that gets a copy of a request, if any, as :attr:`proxy.topology.Instance.pool` has it."""
        if self.split is None or self._arms is None or self.split.shadow is None or record.bucket is None:
            return None
        return _pool(self.split.shadow) if record.split == self.split.id and self._arms.copies(record.bucket) else None


def _pool(arm: str) -> str:
    return "" if arm == MAIN else arm
