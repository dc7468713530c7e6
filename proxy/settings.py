"""Contract shape: what the owner of a deployment may set on the proxy; the ``proxy`` part of a profile.

Times are seconds. Unknown keys and wrong types are refused.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, ByteSize, ConfigDict, Field

from proxy.pools import PoolSettings

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Bytes = Annotated[ByteSize, Field(ge=1)]
Port = Annotated[int, Field(ge=1, le=65535)]

STRICT = ConfigDict(extra="forbid", strict=True)
_BODY_LIMIT = ByteSize(64 * 1024 * 1024)
_BODIES_LIMIT = ByteSize(1024**3)


class FailurePolicy(StrEnum):
    """What happens to a request whose KV hand-over failed before the first byte of the answer."""

    FAIL = "fail"
    """The client gets the error."""
    RETRY = "retry"
    """Other pairs are tried; then the client gets the last error."""
    AGGREGATE = "aggregate"
    """Decode serves the whole request by itself, and the answer's headers say so."""


@dataclass(frozen=True, slots=True)
class Leg:
    """Limits of one request to one instance."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    connect: Seconds = 5.0
    """Until the TCP connection stands."""
    first_byte: Seconds = 300.0
    """Until the first byte of the answer's body; a long prompt computes for minutes."""
    idle: Seconds = 120.0
    """Between two chunks of an answer."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits of each leg. There is no limit on the whole of a stream."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    prefill: Leg = Leg()
    decode: Leg = Leg()
    """Also of requests that one instance serves alone."""
    whole_answer: Seconds = 1800.0
    """Instead of decode's ``first_byte`` for an answer that is not streamed."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Bounds of the failure policy ``retry``, before the first byte of the answer."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    attempts: Count = 3
    """Pairs that are tried for one request."""
    within: Seconds = 60.0
    """No further pair is tried after so long."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """When an instance, or a pair, gets no requests for a while."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    failures: Count = 3
    """In a row. A refused connection counts as so many."""
    pause: Seconds = 1.0
    """Until one request may try again; doubles with every such trial that fails."""
    longest_pause: Seconds = 30.0
    """The longest that it doubles to."""


@dataclass(frozen=True, slots=True)
class Admission:
    """How many requests one worker of the proxy takes at a time."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    concurrency: Count = 4096
    """Requests that are being served."""
    queue: Annotated[int, Field(ge=0)] = 1024
    """Requests that wait for one of them to end, clients taking turns."""
    wait: Seconds = 30.0
    """A request that has waited for so long is refused."""
    memory: Bytes = _BODIES_LIMIT
    """Of all request bodies that are held at a time."""


@dataclass(frozen=True, slots=True)
class Canary:
    """Requests of the proxy's own that prove that KV moves: each costs two prompts and two short answers.

    The prompt has a little more than two blocks of tokens, at least 144, each answer 8 tokens.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    enabled: bool = True
    """Send them, and give a pair requests only while it is proven."""
    interval: Seconds = 60.0
    """Between two canaries through a pair that works."""
    timeout: Seconds = 30.0
    """For one of them."""
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Nats by which the likeliest token may be ahead of the one that was chosen with prefill's KV; by default 0.1, and
    1.0 with a KV cache of 8 bits or less."""


class Policy(StrEnum):
    """Which of several instances takes a request."""

    LEAST_IN_FLIGHT = "least_in_flight"
    """The one with the fewest requests in flight."""
    ROUND_ROBIN = "round_robin"
    """One after the other."""
    POWER_OF_TWO = "power_of_two"
    """Of two drawn by lot, the one with fewer requests in flight."""
    PREFIX_AFFINITY = "prefix_affinity"
    """The one that has seen most of the prompt's beginning, unless it has far more to do than the others."""
    SESSION_AFFINITY = "session_affinity"
    """The same for the same session, unless it has far more to do than the others."""
    TTFT = "ttft"
    """The one with the most of the prompt cached that still meets the objective; only for prefill."""


def _not_by_ttft(policy: Policy) -> Policy:
    if policy is Policy.TTFT:
        raise ValueError("ttft is a policy for prefill: its estimate is made of the prompts that wait there")
    return policy


@dataclass(frozen=True, slots=True)
class Selection:
    """Who takes a request."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    prefill: Policy = Policy.LEAST_IN_FLIGHT
    decode: Annotated[Policy, AfterValidator(_not_by_ttft)] = Policy.LEAST_IN_FLIGHT
    """Also for aggregated instances."""
    session_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] = "x-session-id"
    """Names the session of a request."""
    remembered_tokens: Annotated[int, Field(ge=64)] = 1_000_000
    """Of prompts, for each instance; about what its KV cache holds."""


def _can_apply(tokens: int) -> int:
    if tokens < 1:
        raise ValueError("no prompt is shorter than that: null turns a threshold off")
    return tokens


Threshold = Annotated[int, AfterValidator(_can_apply)]


@dataclass(frozen=True, slots=True)
class ConditionalPD:
    """When decode shall serve a request alone although prefill is there. All of it is off unless it is set."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    shorter_than: Threshold | None = None
    """Tokens of the prompt; exact for token ids, else a quarter of its bytes."""
    uncached_shorter_than: Threshold | None = None
    """Tokens of the prompt that decode does not have cached yet."""
    idle_decode: bool = False
    """Decode has nothing in flight."""


@dataclass(frozen=True, slots=True)
class Objectives:
    """What the deployment is meant to reach."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    ttft: Seconds = 0.2
    """Time to first token; the policy ``ttft`` steers by it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Answers of a baseline, with which every engine is compared: does a quantized one still answer as it was judged?

    `launcher baseline` writes them. Each comparison costs one prompt for each answer in the file.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    file: str
    """As the proxy reaches it, absolute."""
    interval: Seconds = 600.0
    """Between two comparisons of an engine."""


Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Alerts:
    """When operators are alerted: the rules in ``helm/files/alerts.yaml`` compare with these, by ``/metrics``."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    ttft: Seconds = 0.5
    """Time to first token that 95 % of streams shall not exceed."""
    kv_transfer: Seconds = 0.05
    """Time that 95 % of KV transfers shall not exceed."""
    acceptance: Share = 0.4
    """Of draft tokens, those that are accepted; less is too little."""
    break_even: Share = 0.5
    """Acceptance below which speculation is expected to cost more than it saves; measure where yours is."""
    tpot_without_speculation: Seconds | None = None
    """Time by output token as you have measured it without speculation, under your load. Only with it can be told that
    speculation is slower."""
    fallback_share: Share = 0.05
    """Of requests, those served aggregated because something is broken."""
    handover_failures: Share = 0.01
    """Of hand-overs, those that fail."""
    failed_share: Share = 0.01
    """Of requests, those that fail or are broken off."""
    kv_cache_usage: Share = 0.95
    """Of the KV cache, what is in use for long."""
    preempted_share: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.1
    """Preemptions by finished request."""
    canary_age: Seconds = 300.0
    """Without a canary that decides anything about a pair."""
    reference_agreement: Share = 0.9
    """Of the tokens of reference answers, those that an engine shall answer likewise."""


@dataclass(frozen=True, slots=True)
class ClientKey:
    """The key of a client or an operator, of which only the digest is kept. ``proxy --new-key NAME`` makes one.

    Keys must be long random strings: whoever reads a digest could find out a key that somebody has thought of.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
    """In the log; those who have the same key wait in the same line when there is a queue."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the key, in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM, read at the start. A renewed certificate needs a restart."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    certificate: str
    """The chain, the proxy's own first."""
    key: str
    """Without a password."""


@dataclass(frozen=True, slots=True)
class Admin:
    """The address of those who operate the proxy. In the clear and without keys: let only them reach it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    port: Port
    """Where it listens."""
    host: str = "127.0.0.1"
    """The address it listens on."""


def _address(given: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", given):
        raise ValueError("write the address of a collector, e.g. http://127.0.0.1:4318")
    return given


@dataclass(frozen=True, slots=True)
class Tracing:
    """Where spans of the requests go, by OTLP over HTTP. Needs the packages of the extra ``tracing``."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    endpoint: Annotated[str, AfterValidator(_address)]
    """The collector's base address, e.g. ``http://127.0.0.1:4318``; ``/v1/traces`` is added to it."""
    service_name: Annotated[str, Field(min_length=1)] = "duet"
    """What its spans are said to come from; engines add their instance's name."""
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the requests that are traced; of those whose client traces them, the client decides."""

    @property
    def traces_url(self) -> str:
        """Where spans are posted."""
        return self.endpoint.rstrip("/").removesuffix("/v1/traces") + "/v1/traces"


class LogFormat(StrEnum):
    """How lines of the log are written."""

    TEXT = "text"
    """For people."""
    JSON = "json"
    """One object a line."""


@dataclass(frozen=True, slots=True)
class Log:
    """What the proxy says on its standard error. Neither prompts nor keys are in it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    format: LogFormat = LogFormat.TEXT
    """``json`` for a collector of logs; a line of a request has its fields then."""


def _distinct(keys: tuple[ClientKey, ...]) -> tuple[ClientKey, ...]:
    for values in ([key.name for key in keys], [key.sha256 for key in keys]):
        if twice := {value for value in values if values.count(value) > 1}:
            raise ValueError(f"used twice: {', '.join(sorted(twice))}")
    return keys


@dataclass(frozen=True, slots=True)
class Settings:
    """All of it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    host: str = "127.0.0.1"
    """The address that it listens on; 0.0.0.0 for all of this machine."""
    port: Port = 8000
    """The port that clients use."""
    failure_policy: FailurePolicy = FailurePolicy.AGGREGATE
    client_policies: tuple[FailurePolicy, ...] = ()
    """Those that a client may ask for by the header ``X-Duet-Failure-Policy``."""
    retry: Retry = field(default_factory=Retry)
    timeouts: Timeouts = field(default_factory=Timeouts)
    breaker: Breaker = field(default_factory=Breaker)
    admission: Admission = field(default_factory=Admission)
    probe_interval: Seconds = 2.0
    """Between two health probes of an instance."""
    frozen_after: Seconds = 10.0
    """An instance is out of rotation when it answers no probe for so long, or has work for so long and none of its own
    counters moves, nor does it answer a request for one token. Longer than its longest single step."""
    canary: Canary = field(default_factory=Canary)
    selection: Selection = field(default_factory=Selection)
    pd: ConditionalPD = field(default_factory=ConditionalPD)
    pools: PoolSettings = field(default_factory=PoolSettings)
    objectives: Objectives = field(default_factory=Objectives)
    reference: Reference | None = None
    """Compare engines with a baseline's answers."""
    alerts: Alerts = field(default_factory=Alerts)
    linger: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Seconds after a signal to stop in which new requests are still served, each on a connection that ends with its
    answer: for balancers that need a while to notice. In a cluster 5 at least."""
    drain: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 20.0
    """Seconds that running requests get to finish after that."""
    body_limit: Bytes = _BODY_LIMIT
    """Of a request's body; in a profile also with a unit, e.g. ``64MiB``."""
    tls: Tls | None = None
    """Speak HTTPS to clients."""
    admin: Admin | None = None
    """Where ``/ready``, ``/pairs``, ``/overview``, ``/ui`` and ``/metrics`` are answered; without it, where clients
    are."""
    workers: Count = 1
    """Processes that serve. They share nothing but the address and the sums in ``/metrics``: each has the limits of
    ``admission`` for itself, probes the instances itself and balances its own requests, and ``/ready`` tells what the
    one sees that answers."""
    log: Log = field(default_factory=Log)
    tracing: Tracing | None = None
    """Send spans of the requests to a collector."""
    client_keys: Annotated[tuple[ClientKey, ...], AfterValidator(_distinct)] = ()
    """Who may use the proxy; without any, everybody. With them no key of a client reaches an engine."""
    admin_keys: Annotated[tuple[ClientKey, ...], AfterValidator(_distinct)] = ()
    """Operators: who may do what changes something, today ``POST /pairs/prove``; without any, whoever may look. They
    may look where clients need a key, and their keys reach no engine."""
    engine_key_env: Annotated[str, Field(min_length=1)] | None = None
    """The environment variable that holds the engines' own key, sent in place of what clients send."""
