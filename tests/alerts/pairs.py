"""Cases of alerts about pairs of a prefill and a decode engine. One sample in 15 s: 4 are a minute, 40 ten."""

from collections.abc import Mapping

from tests.alerts.rules import Case, Fires

_PAIR = 'prefill="prefill-0",decode="decode-0"'
_NAMES = {"prefill": "prefill-0", "decode": "decode-0"}
_OK = f'duet_handovers_total{{{_PAIR},outcome="ok"}}'
_FAILED = f'duet_handovers_total{{{_PAIR},outcome="failed"}}'
_USABLE = f"duet_pair_usable{{{_PAIR}}}"
_AGE = f"duet_pair_proof_age_seconds{{{_PAIR}}}"
_PREFILL = 'engine="prefill-0",role="prefill",rank="0",model="m"'
_DECODE = 'engine="decode-0",role="decode",rank="0",model="m"'
_SERVE = {
    'duet_instance_healthy{engine="prefill-0",role="prefill"}': "1x160",
    'duet_instance_healthy{engine="decode-0",role="decode"}': "1x160",
    'duet_instance_draining{engine="prefill-0"}': "0x160",
    'duet_instance_draining{engine="decode-0"}': "0x160",
}
_DRAINING = {**_SERVE, 'duet_instance_draining{engine="decode-0"}': "1x160"}
_DOWN = {**_SERVE, 'duet_instance_healthy{engine="prefill-0",role="prefill"}': "0x160"}


def _verdict(verdict: str) -> str:
    return f'duet_pair_verdict{{{_PAIR},verdict="{verdict}"}}'


def _from(source: str) -> str:
    return f'duet_engine_prompt_tokens_by_source_total{{{_DECODE},source="{source}"}}'


def _transfers(within: Mapping[str, str]) -> dict[str, str]:
    return {f'duet_engine_kv_transfer_seconds_bucket{{{_DECODE},le="{le}"}}': n for le, n in within.items()}


def _failing(share: str) -> Fires:
    return Fires(
        _NAMES,
        "KV does not get over: prefill-0 to decode-0",
        f"Of the hand-overs from prefill-0 to decode-0 {share} failed within 10 minutes; at most 1% may.",
    )


def _expired(count: int) -> Fires:
    return Fires(
        {"engine": "prefill-0"},
        "KV expired at prefill-0",
        f"{count} KV caches of prefill-0 were not taken before their lease ended, within 15 minutes (more "
        "than 0): decode came too late or never, and their memory was lost to others meanwhile.",
    )


_SLOW = Fires(
    {"engine": "decode-0"},
    "KV moves slowly to decode-0: 75ms (p95)",
    "One KV transfer in twenty at decode-0 takes longer than 75ms; at most 50ms was meant.",
)
_OFF = Fires(
    {"decode": "decode-0"},
    "PD is silently off at decode-0",
    "decode-0 answers hand-overs, but computes the prompts itself: prefill works for nothing, and every "
    "prompt is paid for twice.",
)
_LATE = Fires(
    {"engine": "prefill-0"},
    "KV of prefill-0 was read after its lease: answers may be wrong",
    "1 KV caches of prefill-0 were read within 15 minutes after their lease had ended (more than 0), when "
    "others may have been written over them.",
    "critical",
)
_OUT = Fires(
    _NAMES,
    "No requests go from prefill-0 to decode-0",
    "prefill-0 and decode-0 both serve, but the pair is out of use for 2 minutes: a canary or requests have "
    "failed, or the two are not alike. `launcher status --pairs` names the reason.",
)
_WRONG = Fires(
    {**_NAMES, "verdict": "wrong_text"},
    "Wrong text from prefill-0 to decode-0",
    "The last canary from prefill-0 to decode-0 was answered otherwise with prefill's KV than without: "
    "answers since the last good one may be wrong. The pair is out of use until one comes through.",
    "critical",
)
_FAILS = Fires(
    {**_NAMES, "verdict": "failed"},
    "Canaries fail from prefill-0 to decode-0",
    "Canaries from prefill-0 to decode-0 have failed for a minute. The pair is out of use until one comes through.",
)


def _overdue(age: str) -> Fires:
    return Fires(
        _NAMES,
        "No canary has decided about prefill-0 to decode-0",
        f"The last canary from prefill-0 to decode-0 that could have decided something is {age} old; at most "
        "5m 0s may pass without.",
    )


CASES: Mapping[str, tuple[Case, ...]] = {
    "DuetHandoversFailing": (
        Case("2 of 100", {_OK: "0+98x80", _FAILED: "0+2x80"}, "15m", (_failing("2%"),)),
        Case(
            "two among few, a canary between them",
            {_OK: "0+1x80", _FAILED: "_x40 1x8 2x40"},
            "14m",
            (_failing("4.762%"),),
        ),
        Case(
            "two in the first scrape that sees any", {_OK: "0+1x80", _FAILED: "_x40 2x40"}, "14m", (_failing("4.762%"),)
        ),
        Case("just not too many", {_OK: "0+991x80", _FAILED: "0+9x80"}, "15m"),
        Case("one", {_OK: "0+1x80", _FAILED: "_x40 1x80"}, "14m"),
        Case("no traffic any more", {_OK: "50x80", _FAILED: "50x80"}, "15m"),
        Case("of a proxy that is scraped from now on", {_OK: "_x40 9x80", _FAILED: "_x40 5x80"}, "14m", up="_x40 1x80"),
    ),
    "DuetKVTransferSlow": (
        Case("one in ten", _transfers({"0.05": "0+90x80", "0.1": "0+100x80", "+Inf": "0+100x80"}), "20m", (_SLOW,)),
        Case("one in thirty", _transfers({"0.05": "0+97x80", "0.1": "0+100x80", "+Inf": "0+100x80"}), "20m"),
        Case("not yet for long", _transfers({"0.05": "0x80", "0.1": "0+9x80", "+Inf": "0+9x80"}), "9m"),
        Case("no traffic", _transfers({"0.05": "5x80", "0.1": "80x80", "+Inf": "80x80"}), "20m"),
        Case("a connector that does not tell", {_OK: "0+1x80"}, "20m"),
    ),
    "DuetPDSilentlyOff": (
        Case("by a canary", {'duet_pd_silently_off{decode="decode-0"}': "0x20 1x60"}, "10m", (_OFF,)),
        Case(
            "by decode's counters, without canaries",
            {_OK: "0+2x80", _from("external_kv_transfer"): "0x80", _from("local_compute"): "0+1000x80"},
            "15m",
            (_OFF,),
        ),
        Case("a canary came through", {'duet_pd_silently_off{decode="decode-0"}': "0x20 1x10 0x60"}, "10m"),
        Case(
            "some KV comes",
            {_OK: "0+2x80", _from("external_kv_transfer"): "0+100x80", _from("local_compute"): "0+1000x80"},
            "15m",
        ),
        Case(
            "prompts that decode has cached",
            {
                _OK: "0+2x80",
                _from("external_kv_transfer"): "0x80",
                _from("local_cache_hit"): "0+1000x80",
                _from("local_compute"): "0+2x80",
            },
            "15m",
        ),
        Case(
            "no hand-overs, all is served aggregated",
            {_OK: "9x80", _from("external_kv_transfer"): "0x80", _from("local_compute"): "0+1000x80"},
            "15m",
        ),
        Case("an engine that does not tell sources", {_OK: "0+2x80", _from("local_compute"): "0+1000x80"}, "15m"),
    ),
    "DuetKVExpired": (
        Case("one", {f"duet_engine_kv_expired_total{{{_PREFILL}}}": "0x40 1x80"}, "10m15s", (_expired(1),)),
        Case(
            "still after ten minutes",
            {f"duet_engine_kv_expired_total{{{_PREFILL}}}": "3x40 5x80"},
            "20m",
            (_expired(2),),
        ),
        Case("long ago", {f"duet_engine_kv_expired_total{{{_PREFILL}}}": "0x4 3x120"}, "20m"),
        Case(
            "the engine was started anew", {f"duet_engine_kv_expired_total{{{_PREFILL}}}": "3x40 stale _x3 0x80"}, "14m"
        ),
        Case(
            "it told nothing for a while", {f"duet_engine_kv_expired_total{{{_PREFILL}}}": "3x40 stale _x3 3x80"}, "14m"
        ),
    ),
    "DuetKVReadLate": (
        Case(
            "one, where KV has expired",
            {
                f"duet_engine_kv_read_late_total{{{_PREFILL}}}": "0x40 1x80",
                f"duet_engine_kv_expired_total{{{_PREFILL}}}": "2x120",
            },
            "10m15s",
            (_LATE,),
        ),
        Case(
            "a client left: nothing has expired",
            {
                f"duet_engine_kv_read_late_total{{{_PREFILL}}}": "0x40 1x80",
                f"duet_engine_kv_expired_total{{{_PREFILL}}}": "0x120",
            },
            "10m15s",
        ),
        Case(
            "long ago",
            {
                f"duet_engine_kv_read_late_total{{{_PREFILL}}}": "0x4 1x80",
                f"duet_engine_kv_expired_total{{{_PREFILL}}}": "0x4 1x80",
            },
            "20m",
        ),
    ),
    "DuetPairOutOfUse": (
        Case("for long", {**_SERVE, _USABLE: "1x20 0x60"}, "8m", (_OUT,)),
        Case("not yet for long", {**_SERVE, _USABLE: "1x20 0x60"}, "6m"),
        Case("used again", {**_SERVE, _USABLE: "1x20 0x20 1x40"}, "12m"),
        Case("one of the two is drained", {**_DRAINING, _USABLE: "1x20 0x60"}, "8m"),
        Case("one of the two is down", {**_DOWN, _USABLE: "1x20 0x60"}, "8m"),
    ),
    "DuetCanaryFailing": (
        Case(
            "wrong text, at once", {**_SERVE, _USABLE: "0x80", _verdict("wrong_text"): "0x20 1x60"}, "5m15s", (_WRONG,)
        ),
        Case("failed, for a minute", {**_SERVE, _USABLE: "0x80", _verdict("failed"): "0x20 1x60"}, "6m30s", (_FAILS,)),
        Case("failed just now", {**_SERVE, _USABLE: "0x80", _verdict("failed"): "0x20 1x60"}, "5m30s"),
        Case("failed, as one of the two was dying", {**_DOWN, _USABLE: "0x80", _verdict("failed"): "1x80"}, "8m"),
        Case("recomputed is another alert's", {**_SERVE, _USABLE: "0x80", _verdict("recomputed"): "1x80"}, "8m"),
        Case(
            "proven again",
            {**_SERVE, _USABLE: "1x80", _verdict("failed"): "1x20 0x60", _verdict("proven"): "0x20 1x60"},
            "8m",
        ),
    ),
    "DuetCanaryOverdue": (
        Case("since long", {**_SERVE, _USABLE: "1x80", _AGE: "0+15x80"}, "10m", (_overdue("10m 0s"),)),
        Case(
            "none ever decided",
            {**_SERVE, _USABLE: "1x80", _AGE: "3x80", _verdict("undecided"): "1x80"},
            "10m",
            (_overdue("3s"),),
        ),
        Case("just in time", {**_SERVE, _USABLE: "1x80", _AGE: "299x80", _verdict("undecided"): "0x80"}, "10m"),
        Case("one of the two is down", {**_DOWN, _USABLE: "1x80", _AGE: "0+15x80"}, "10m"),
        Case("one of the two is drained", {**_DRAINING, _USABLE: "1x80", _AGE: "0+15x80"}, "10m"),
        Case("canaries are off", {**_SERVE, _USABLE: "1x80"}, "10m"),
        Case(
            "fewer are meant here", {**_SERVE, _USABLE: "1x80", _AGE: "599x80"}, "10m", thresholds={"canary_age": 900.0}
        ),
    ),
}
