"""Shape: what was seen of a deployment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.doctor.series import Series
from launcher.local.deployment import Deployment
from launcher.local.pairs import Matrix
from launcher.local.status import StatusReport
from launcher.plan import Plan
from launcher.quantize.checked import Kept

LATELY = 3600.0
"""Seconds for which it matters that an instance ended by itself."""
FEW = 10
"""Requests in the window below which nothing is concluded from it: then all that was counted since the start is."""


@dataclass(frozen=True, slots=True)
class Host:
    """The machine; ``None`` is what nobody could tell."""

    memory_total: int
    """Bytes, also below."""
    memory_available: int
    swap_used: int
    disk_free: int
    """Where the run directory is."""
    disk_total: int
    shared_free: int | None
    """In ``/dev/shm``."""
    load: float
    """Processes that want to run, on average over a minute."""
    cores: int
    open_files: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Instance -> files that its process has open, and the most it may."""
    gpu_utilisation: Mapping[str, float] = field(default_factory=dict)
    """UUID -> share of the time that it worked, as the driver tells."""
    closed: Mapping[str, str] = field(default_factory=dict)
    """Instance -> its KV connector's address, where nothing accepts a connection."""


@dataclass(frozen=True, slots=True)
class Sight:
    """Everything that checks judge."""

    at: float = 0.0
    """When that was, in seconds since the epoch."""
    seconds: float = 0.0
    """Between the two looks at the metrics."""
    status: StatusReport | None = None
    deployment: Deployment | None = None
    plan: Plan | None = None
    proxy: Series | None = None
    """``/metrics``; ``None`` when it is not told."""
    engines: Series | None = None
    """``/metrics/engines``."""
    pairs: Matrix | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Instance -> why the proxy gives it no requests."""
    logs: Mapping[str, str] = field(default_factory=dict)
    """Instance -> the end of its log, of this run, and of the one before if that ended by itself lately."""
    host: Host | None = None
    checked: Kept | None = None
    """What `launcher quantize check` found last of the model's folder."""
    not_seen: tuple[str, ...] = ()
    """What could not be looked at, and why."""

    @property
    def recent(self) -> bool:
        """Whether enough happened between the looks to judge by that."""
        return self.proxy is not None and self.proxy.counted("duet_requests_total") >= FEW

    @property
    def period(self) -> str:
        """In words, what :attr:`requests` and :meth:`engine` have counted."""
        return f"in the last {self.seconds:.0f} s" if self.recent else "since the proxy was started"

    @property
    def requests(self) -> Series:
        """The proxy's page, of the time that is judged."""
        page = self.proxy or Series()
        return page if self.recent else Series(page.last)

    @property
    def engine_names(self) -> tuple[str, ...]:
        """Of all instances but the proxy, as far as anybody tells."""
        if self.engines is not None:
            return tuple(name for (name,) in self.engines.by("duet_engine_up", "engine"))
        return tuple(each.name for each in self.plan.engines) if self.plan is not None else ()

    def engine(self, name: str) -> Series:
        """One engine's metrics, of the time that is judged."""
        page = (self.engines or Series()).of(engine=name)
        return page if self.recent else Series(page.last)

    def threshold(self, alert: str) -> float | None:
        """What the profile says under ``proxy.alerts``."""
        return None if self.proxy is None else self.proxy.most("duet_alert_threshold", alert=alert)
