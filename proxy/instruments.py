"""Shape: every metric of the proxy, what it means and which values its labels have; ``docs/metrics.md`` is made of it.

No label ever holds what a client has written: models are those that are served, statuses those that HTTP knows.
"""

from collections.abc import Mapping

from proxy.instrument import Instrument, Merge
from proxy.instrument import counter as _counter
from proxy.instrument import gauge as _gauge
from proxy.instrument import seconds as _seconds

TTFT_SECONDS = (
    *(0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.225, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55),
    *(0.6, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 40.0, 60.0, 120.0),
)
TOKEN_SECONDS = (
    *(0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.075, 0.1),
    *(0.15, 0.2, 0.3, 0.5, 1.0, 2.0),
)
PAUSE_SECONDS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0)
LEG_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
ANSWER_SECONDS = (
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0),
    *(180.0, 300.0, 600.0, 1800.0),
)
WAIT_SECONDS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0)


INSTANCES = frozenset({"engine", "prefill", "decode"})
"""Labels that name an instance: their samples vanish with it."""

LABELS: Mapping[str, str] = {
    "endpoint": "the route: `completions`, `chat_completions`, `responses`, `messages`, or `other` for one that is "
    "passed on",
    "path": "the way it was served: `pd`, `aggregated`, or `none` for a request that was not",
    "model": "the name in the request if an engine serves it, an adapter's too; `other` for every other name, `none` "
    "where no name was read",
    "status": "of the answer, as HTTP knows it; one that it does not know is its class, e.g. `5xx`",
    "outcome": "of a request: `ok`; `rejected`, the client's fault; `refused`, as too much came or the proxy ends; "
    "`left`, the client did not wait; `failed`, no answer came; `broken_off`, it ended too soon. Of a hand-over: `ok` "
    "or `failed`",
    "counted": "`tokens` where the answer tells its usage, else `events`, which under speculation have several tokens",
    "reason": "as `X-Duet-Bypass` says it for a bypass; `Overloaded`, `NoRoom` or `Draining` for what was not taken",
    "phase": "what the client did not wait for: `upload` (its own body), `queue`, `prefill`, `first_event` (decode "
    "was asked), `answer`",
    "pool": "a name below `pools` in the profile, or `main`",
    "arm": "a pool to which a split sends requests, or its shadow",
    "temperature": "`0`, or the upper bound of the band, which is part of it: `0.5`, `1` or `above`",
    "alert": "a key of `proxy.alerts`",
    "engine": "an instance's name in the configuration",
    "prefill": "a prefill instance's name",
    "decode": "a decode instance's name",
    "role": "`prefill`, `decode` or `aggregated`",
    "kind": "`unreachable`, `timeout`, `cut`, `error`, `aborted` or `without_kv`",
    "verdict": "`proven`, `recomputed`, `wrong_text`, `failed`, `undecided` or `impossible`",
    "step": "`pair`: another pair was tried; `decode`: another decode instance for the same KV; `alone`: another "
    "instance that serves alone",
}

_SERVED = ("endpoint", "path", "model")
_PAIR = ("prefill", "decode")


# Of requests.
REQUESTS = _counter("duet_requests", (*_SERVED, "status", "outcome"), "Finished requests.")
DURATION = _seconds("duet_request_duration_seconds", _SERVED, ANSWER_SECONDS, "Request to end of answer.")
TTFT = _seconds("duet_ttft_seconds", _SERVED, TTFT_SECONDS, "Request to first event of a streamed answer.")
TPOT = _seconds(
    "duet_time_per_output_token_seconds",
    (*_SERVED, "counted"),
    TOKEN_SECONDS,
    "From the first event of a complete streamed answer to its end, by each output token after the first; of answers "
    "with one choice.",
)
PAUSE = _seconds(
    "duet_longest_pause_seconds",
    _SERVED,
    PAUSE_SECONDS,
    "The longest time between two arrivals within a streamed answer: its worst stall.",
)
PROMPT_TOKENS = _counter("duet_prompt_tokens", _SERVED, "Of prompts whose answers tell it.", "tokens")
COMPLETION_TOKENS = _counter("duet_completion_tokens", _SERVED, "Of answers that tell it.", "tokens")
DRAFTED_TOKENS = _counter(
    "duet_drafted_tokens",
    ("temperature",),
    "Drafted for answers that tell it (`speculation.report_acceptance`), by the temperature of their requests.",
    "tokens",
)
ACCEPTED_TOKENS = _counter("duet_accepted_tokens", ("temperature",), "Those that the model accepted.", "tokens")
USAGE_UNKNOWN = _counter(
    "duet_usage_unknown",
    _SERVED,
    "Answers of status 200 on routes that generate which do not tell their tokens; streams do when the client asks by "
    "stream_options.include_usage.",
)
BYPASSED = _counter("duet_pd_bypassed", ("reason",), "Requests served aggregated although PD is configured.")
RETRIES = _counter("duet_retries", ("step",), "Tries after the first, before the first byte of the answer.", "tries")
REFUSED = _counter("duet_refused", ("reason",), "Requests that were not taken, by reason.")
DISCONNECTS = _counter("duet_client_disconnects", ("phase",), "Clients that left before their answer was complete.")

# Of pools.
POOL_REQUESTS = _counter(
    "duet_pool_requests",
    ("pool", "outcome"),
    "Finished requests on routes that generate, by the pool that served them or was the last to be asked. Metrics of "
    "pools are shown only where there are several.",
)
POOL_TTFT = _seconds("duet_pool_ttft_seconds", ("pool",), TTFT_SECONDS, "As `duet_ttft_seconds`.")
POOL_TPOT = _seconds(
    "duet_pool_time_per_output_token_seconds",
    ("pool", "counted"),
    TOKEN_SECONDS,
    "As `duet_time_per_output_token_seconds`.",
)
POOL_FALLBACKS = _counter(
    "duet_pool_fallbacks", ("pool",), "Requests that went to another pool, as nobody in this one could serve them."
)
INSTANCE_POOL = _gauge(
    "duet_instance_pool",
    ("engine", "pool"),
    "Always 1; tells the pool of an instance, to join with its other metrics.",
    "1",
)

# Of a split.
ARM_REQUESTS = _counter(
    "duet_arm_requests",
    ("arm", "outcome"),
    "Finished requests that a split has sent to this pool and that it served or failed, copies for a shadow too. "
    "Metrics of arms are shown only where there is a split.",
)
ARM_TTFT = _seconds("duet_arm_ttft_seconds", ("arm",), TTFT_SECONDS, "As `duet_ttft_seconds`.")
ARM_TPOT = _seconds(
    "duet_arm_time_per_output_token_seconds",
    ("arm",),
    TOKEN_SECONDS,
    "As `duet_time_per_output_token_seconds`, of answers that tell their tokens.",
)
ARM_SHARE = _gauge("duet_arm_share", ("arm",), "Of the sessions or requests that are divided, this arm's.", "0 to 1")
NOT_COPIED = _counter(
    "duet_shadow_not_copied", ("pool",), "Requests of which a shadow got no copy, as too many were under way."
)
EXPERIMENT_ENDED = _gauge(
    "duet_experiment_ended", (), "1 when a guard has ended the split's experiment: all goes to arm A."
)

# Of admission.
WAIT = _seconds(
    "duet_admission_wait_seconds",
    (),
    WAIT_SECONDS,
    "In the queue, of requests that had to wait for a place, also in vain; it is part of the time to first token.",
)
INSIDE = _gauge("duet_admitted", (), "Requests that have a place.", "requests", Merge.SUM)
WAITING = _gauge("duet_waiting", (), "Requests in the queue for a place.", "requests", Merge.SUM)
HELD = _gauge("duet_held_bytes", (), "Of request bodies that are kept.", "bytes", Merge.SUM)
DRAINING = _gauge("duet_draining", (), "1 when the proxy is about to end and takes nothing new.")

# Of hand-overs.
HANDOFF = _seconds(
    "duet_handoff_seconds", (), LEG_SECONDS, "From sending a request to prefill until its answer that hands KV over."
)
HANDOVERS = _counter(
    "duet_handovers",
    (*_PAIR, "outcome"),
    "KV caches that decode was asked to take over, by outcome.",
    "hand-overs",
)
HANDOVER = _seconds(
    "duet_handover_seconds",
    _PAIR,
    LEG_SECONDS,
    "From sending a request with prefill's KV to decode until the first event of its streamed answer.",
)
WITHOUT_KV = _counter("duet_prefill_without_kv", (), "Prefill answers without usable KV parameters.", "answers")
KV_STRANDED = _counter(
    "duet_kv_stranded",
    (),
    "KV caches that nobody took over or could be asked to free: prefill keeps them until their lease ends.",
    "KV caches",
)
KV_RELEASED = _counter(
    "duet_kv_released", (), "KV caches that nobody took over and that prefill was told to free.", "KV caches"
)

# Of pairs.
CANARIES = _counter("duet_canaries", (*_PAIR, "verdict"), "Canaries through a pair, by verdict.", "canaries")
VERDICT = _gauge("duet_pair_verdict", (*_PAIR, "verdict"), "1 for what the last canary that decided something showed.")
PROOF_AGE = _gauge(
    "duet_pair_proof_age_seconds",
    _PAIR,
    "Since the last canary that decided something; of the worker that waits longest.",
    "seconds",
)
PROVEN = _gauge(
    "duet_pair_proven_timestamp_seconds",
    _PAIR,
    "When a canary came through last, if the last one did.",
    "seconds since 1970",
)
SPEED = _gauge(
    "duet_pair_kv_bytes_per_second",
    _PAIR,
    "Of the last canary's KV, where the engines count it; large prompts are faster.",
    "bytes per second",
)
USABLE = _gauge("duet_pair_usable", _PAIR, "1 when requests may go this way, if both serve.", to=Merge.LEAST)
PAIR_BREAKER = _gauge("duet_pair_breaker_open", _PAIR, "1 when failed hand-overs keep requests away.")
PAIR_SUSPENDED = _counter(
    "duet_pair_suspended", _PAIR, "Times that a failed hand-over has kept requests away from a pair.", "times"
)
SILENTLY_OFF = _gauge(
    "duet_pd_silently_off", ("decode",), "1 when an instance answers hand-overs but computes the prompts itself."
)

# Of instances.
IN_FLIGHT = _gauge("duet_in_flight", ("engine",), "Requests in flight.", "requests", Merge.SUM)
HEALTHY = _gauge("duet_instance_healthy", ("engine", "role"), "1 when probes say so.", to=Merge.LEAST)
FROZEN = _gauge("duet_engine_frozen", ("engine",), "1 when it has work, but none of its counters moves.")
INSTANCE_DRAINING = _gauge(
    "duet_instance_draining", ("engine",), "1 when it gets no new requests on purpose.", to=Merge.LEAST
)
BREAKER = _gauge("duet_breaker_open", ("engine",), "1 when failures keep requests away.")
BREAKER_OPENED = _counter(
    "duet_breaker_opened", ("engine",), "Times that failures have kept requests away from an instance.", "times"
)
FAILURES = _counter("duet_upstream_failures", ("engine", "kind"), "Failures of an instance.", "failures")
SHARE = _gauge(
    "duet_kv_received_share",
    ("decode",),
    "Of the last minute's prompt tokens, canaries' too, the part whose KV came from another instance.",
    "0 to 1",
)
REFERENCE = _gauge(
    "duet_reference_agreement",
    ("engine",),
    "Of the tokens of a baseline's answers, those that the engine would choose, too; where `proxy.reference` is set.",
    "0 to 1",
    Merge.LEAST,
)
QUEUE = _gauge(
    "duet_prefill_queue_seconds",
    ("engine",),
    "Estimated time until a prefill instance has computed all it was given: what the policy ttft steers by. Shown "
    "under that policy only.",
    "seconds",
    Merge.SUM,
)

# Of the cluster.
DISCOVERY_AGE = _gauge(
    "duet_discovery_age_seconds",
    (),
    "Since the API server last told which pods there are; only with discovery. Below `discovery.reconcile` if it does.",
    "seconds",
)

# Of the configuration.
THRESHOLD = _gauge(
    "duet_alert_threshold",
    ("alert",),
    "What the configuration says under `proxy.alerts`: alerts compare with it.",
    "as the alert's",
)

GROUPS: Mapping[str, tuple[Instrument, ...]] = {
    "Requests": (
        *(REQUESTS, DURATION, TTFT, TPOT, PAUSE, PROMPT_TOKENS, COMPLETION_TOKENS, USAGE_UNKNOWN),
        *(DRAFTED_TOKENS, ACCEPTED_TOKENS),
        *(BYPASSED, RETRIES, REFUSED, DISCONNECTS),
    ),
    "Pools": (POOL_REQUESTS, POOL_TTFT, POOL_TPOT, POOL_FALLBACKS, INSTANCE_POOL),
    "Splits": (ARM_REQUESTS, ARM_TTFT, ARM_TPOT, ARM_SHARE, NOT_COPIED, EXPERIMENT_ENDED),
    "Admission": (WAIT, INSIDE, WAITING, HELD, DRAINING),
    "Hand-overs": (HANDOFF, HANDOVERS, HANDOVER, WITHOUT_KV, KV_STRANDED, KV_RELEASED),
    "Pairs": (CANARIES, VERDICT, PROOF_AGE, PROVEN, SPEED, USABLE, PAIR_BREAKER, PAIR_SUSPENDED, SILENTLY_OFF),
    "Instances": (
        *(IN_FLIGHT, HEALTHY, FROZEN, INSTANCE_DRAINING, BREAKER, BREAKER_OPENED, FAILURES, SHARE),
        *(REFERENCE, QUEUE),
    ),
    "Cluster": (DISCOVERY_AGE,),
    "Configuration": (THRESHOLD,),
}
"""All of them, by what they tell of."""
ALL = tuple(instrument for group in GROUPS.values() for instrument in group)
