"""What the controller tells Prometheus: its state, what it goes by, and how often it did what."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from launcher.operate.speculation.state import Decision
from proxy.instrument import Instrument, counter, gauge

CAP = gauge(
    "duet_speculation_cap", ("pool",), "Draft tokens by step that engines may draft at most; 0 is off.", "tokens"
)
TRIAL = gauge(
    "duet_speculation_trial", ("pool",), "1 while one engine, or half of the traffic, tries whether speculation pays."
)
ACCEPTANCE = gauge(
    "duet_speculation_acceptance", ("pool",), "Accepted of drafted tokens, in the windows that count.", "0 to 1"
)
GAIN = gauge(
    "duet_speculation_gain",
    ("pool", "bound"),
    "Tokens a second gained at this load over serving without, as a share: the value and its 95 % interval.",
    "share",
)
DECISIONS = counter("duet_speculation_decisions", ("pool", "action", "done"), "Decisions, and what became of them.")
ALL: tuple[Instrument, ...] = (CAP, TRIAL, ACCEPTANCE, GAIN, DECISIONS)
LABELS = {
    "pool": "a name below `pools` in the profile, or `main`",
    "bound": "`value`, `low` or `high`",
    "action": "`keep`, `lower`, `raise`, `off`, `try`, `on`, `undo`, `compare`, `prefer_speculation` or `prefer_plain`",
    "done": "`yes`; `dry run`; `no`: it could not be done, or not without a failed request; `later`: an engine "
    "is not rid of its requests yet",
}


class Metrics:
    """On a registry that is passed in; of one pool."""

    def __init__(self, registry: CollectorRegistry, pool: str) -> None:
        def of(instrument: Instrument) -> Gauge:
            return Gauge(instrument.name, instrument.meaning, instrument.labels, registry=registry)

        self._pool = pool
        self._cap, self._trial, self._acceptance, self._gain = of(CAP), of(TRIAL), of(ACCEPTANCE), of(GAIN)
        self._decisions = Counter(DECISIONS.name, DECISIONS.meaning, DECISIONS.labels, registry=registry)

    def tell(self, decision: Decision, *, cap: int, tries: bool, done: str) -> None:
        """After one window. What is not known in it is not shown."""
        self._cap.labels(self._pool).set(cap)
        self._trial.labels(self._pool).set(tries)
        self._decisions.labels(self._pool, decision.action.value, done).inc()
        self._acceptance.clear()
        self._gain.clear()
        if (rate := decision.found.traffic.acceptance) is not None:
            self._acceptance.labels(self._pool).set(rate)
        if (gain := decision.found.gain) is not None:
            for bound in ("value", "low", "high"):
                self._gain.labels(self._pool, bound).set(getattr(gain, bound))
