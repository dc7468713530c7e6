"""Cases of alerts about engines and about what is scraped. One sample in 15 s: 4 are a minute, 40 ten."""

from collections.abc import Mapping

from tests.alerts.rules import Case, Fires

_DECODE = 'engine="decode-0",role="decode"'
_TOLD = f'{_DECODE},rank="0",model="m"'
_NAME = {"engine": "decode-0"}
_HEALTHY = f"duet_instance_healthy{{{_DECODE}}}"
_DRAINING = 'duet_instance_draining{engine="decode-0"}'
_FROZEN = 'duet_engine_frozen{engine="decode-0"}'
_OPEN = 'duet_breaker_open{engine="decode-0"}'
_OPENED = 'duet_breaker_opened_total{engine="decode-0"}'
_PREEMPTED = f"duet_engine_preemptions_total{{{_TOLD}}}"
_USAGE = f"duet_engine_kv_cache_usage_ratio{{{_TOLD}}}"
_ESSENTIAL = {
    f"duet_engine_up{{{_DECODE}}}": "1x80",
    f"duet_engine_requests_running{{{_TOLD}}}": "1x80",
    f"duet_engine_requests_waiting{{{_TOLD}}}": "0x80",
    _USAGE: "0.1x80",
    f"duet_engine_generation_tokens_total{{{_TOLD}}}": "0+9x80",
    f"duet_engine_prompt_tokens_total{{{_TOLD}}}": "0+9x80",
}


def _finished(reason: str) -> str:
    return f'duet_engine_requests_finished_total{{{_TOLD},reason="{reason}"}}'


_DOWN = Fires(
    {**_NAME, "role": "decode"},
    "decode-0 is down",
    "The decode engine decode-0 has answered no probe of the proxy at duet for a minute: it is dead, hangs or "
    "cannot be reached, and gets no requests.",
    "critical",
)
_IS_FROZEN = Fires(
    _NAME,
    "decode-0 is frozen",
    "decode-0 answers its health check and has work, but none of its counters moves, nor does it answer a "
    "request for one token. It gets no requests until it does.",
    "critical",
)
_KEPT_AWAY = Fires(
    _NAME,
    "Failures keep requests away from decode-0",
    "Requests to decode-0 fail again and again though it answers probes: the breaker of decode-0 has been "
    "open for a minute, or has opened 3 times within 5 minutes.",
)
_FULL = Fires(
    _NAME,
    "The KV cache of decode-0 is full: 97%",
    "Of the KV cache of decode-0 97% is in use, for 5 minutes more than 95%: requests wait or are thrown out.",
)
_BLIND = Fires(
    _NAME,
    "No metrics of decode-0",
    "decode-0 serves, but /metrics/engines of duet does not have its requests, tokens or KV cache, or is not "
    "scraped: alerts and dashboards of this engine are blind.",
)


def _storm(ratio: str) -> Fires:
    return Fires(
        _NAME,
        f"decode-0 throws requests out: {ratio} times by finished request",
        f"For lack of KV cache decode-0 has thrown requests out {ratio} times by finished request, to compute "
        "them again; more than 0.10.",
    )


def _missing(how: str, labels: Mapping[str, str]) -> Fires:
    return Fires(
        labels,
        "Prometheus does not get the metrics of duet",
        f"{how}: the proxy of duet is dead or cannot be reached, and nothing else will alert.",
        "critical",
    )


_SILENT = _missing("proxy:8000 has answered no scrape for 2 minutes", {"instance": "proxy:8000"})

CASES: Mapping[str, tuple[Case, ...]] = {
    "DuetEngineDown": (
        Case("for long", {_HEALTHY: "1x20 0x60", _DRAINING: "0x80", _FROZEN: "0x80"}, "7m", (_DOWN,)),
        Case(
            "at one of two proxies", {_HEALTHY: "1x20 0x60", _HEALTHY[:-1] + ',instance="b"}': "1x80"}, "7m", (_DOWN,)
        ),
        Case("not yet for long", {_HEALTHY: "1x20 0x60"}, "5m45s"),
        Case("back again", {_HEALTHY: "1x20 0x10 1x60"}, "8m"),
        Case("drained, to be started anew", {_HEALTHY: "1x20 0x60", _DRAINING: "1x80"}, "7m"),
        Case("frozen is another alert's", {_HEALTHY: "1x20 0x60", _FROZEN: "0x20 1x60"}, "7m"),
    ),
    "DuetEngineFrozen": (
        Case("seen by the proxy", {_FROZEN: "0x20 1x60"}, "5m45s", (_IS_FROZEN,)),
        Case(
            "though its own gauges look idle",
            {**_ESSENTIAL, f"duet_engine_requests_running{{{_TOLD}}}": "0x80", _FROZEN: "0x20 1x60"},
            "5m45s",
            (_IS_FROZEN,),
        ),
        Case("it goes on", {_FROZEN: "0x20 1x4 0x60"}, "7m"),
    ),
    "DuetBreakerOpen": (
        Case("stays open", {_OPEN: "0x20 1x60"}, "6m30s", (_KEPT_AWAY,)),
        Case("opens and closes", {_OPEN: "0x80", _OPENED: "_x20 0+1x60"}, "7m30s", (_KEPT_AWAY,)),
        Case(
            "opened three times within the first scrape", {_OPEN: "0x80", _OPENED: "_x40 3x60"}, "11m30s", (_KEPT_AWAY,)
        ),
        Case("opened once", {_OPEN: "0x20 1 0x60", _OPENED: "_x20 1x60"}, "7m"),
        Case("long ago", {_OPEN: "0x100", _OPENED: "7x100"}, "20m"),
        Case("the proxy was started anew", {_OPEN: "0x100", _OPENED: "7x40 stale _x44"}, "14m"),
    ),
    "DuetKVCacheFull": (
        Case("for long", {_USAGE: "0.97x80"}, "10m", (_FULL,)),
        Case("for a moment", {_USAGE: "0.5x20 0.97x10 0.5x60"}, "9m"),
        Case("nearly", {_USAGE: "0.95x80"}, "10m"),
        Case("its engine is gone", {_USAGE: "0.97x20 stale _x60"}, "8m"),
        Case("that is meant here", {_USAGE: "0.97x80"}, "10m", thresholds={"kv_cache_usage": 0.99}),
    ),
    "DuetPreemptionStorm": (
        Case("one in five", {_PREEMPTED: "0+1x80", _finished("stop"): "0+5x80"}, "15m", (_storm("0.20"),)),
        Case("nothing gets done", {_PREEMPTED: "0+1x80", _finished("stop"): "7x80"}, "15m", (_storm("20.00"),)),
        Case(
            "two proxies tell of one engine",
            {
                _PREEMPTED: "0+1x80",
                _PREEMPTED[:-1] + ',instance="b"}': "0+1x80",
                _finished("stop"): "0+5x80",
                _finished("stop")[:-1] + ',instance="b"}': "0+5x80",
            },
            "15m",
            (_storm("0.20"),),
        ),
        Case(
            "just not too many",
            {_PREEMPTED: "0+1x80", _finished("stop"): "0+4x80", _finished("length"): "0+6x80"},
            "15m",
        ),
        Case("two", {_PREEMPTED: "0x40 2x80", _finished("stop"): "0x120"}, "14m45s"),
        Case(
            "started anew, full of them before",
            {_PREEMPTED: "900x40 stale _x3 0x60", _finished("stop"): "9x40 stale _x3 0x60"},
            "20m",
        ),
        Case("idle", {_PREEMPTED: "50x80", _finished("stop"): "50x80"}, "15m"),
    ),
    "DuetEngineMetricsMissing": (
        Case("it tells none", {_HEALTHY: "1x80", f"duet_engine_up{{{_DECODE}}}": "0x80"}, "5m", (_BLIND,)),
        Case("they are not scraped", {_HEALTHY: "1x80"}, "5m", (_BLIND,)),
        *(
            Case(
                f"renamed: {name.partition('{')[0]}",
                {_HEALTHY: "1x80", **{other: values for other, values in _ESSENTIAL.items() if other != name}},
                "5m",
                (_BLIND,),
            )
            for name in _ESSENTIAL
        ),
        Case("all is there", {_HEALTHY: "1x80", **_ESSENTIAL}, "5m"),
        Case("it is down, which another alert says", {_HEALTHY: "0x80", f"duet_engine_up{{{_DECODE}}}": "0x80"}, "5m"),
        Case("of another engine", {_HEALTHY: "1x80", **_ESSENTIAL, 'duet_engine_up{engine="x"}': "0x80"}, "5m"),
    ),
    "DuetTargetMissing": (
        Case("it dies", {"duet_draining": "0x20 stale _x60"}, "8m", (_SILENT,), up="1x20 0x60"),
        Case(
            "it dies, and stays dead for hours",
            {"duet_draining": "0x20 stale _x800"},
            "3h",
            (_SILENT,),
            up="1x20 0x800",
        ),
        Case("it was never there", {}, "3m", (_SILENT,), up="0x60"),
        Case(
            "it is no target any more",
            {"duet_draining": "0x20 stale _x60"},
            "8m",
            (_missing("It is no target any more", {}),),
            up="1x20 stale _x60",
        ),
        Case("a short restart", {"duet_draining": "0x20 stale _x5 0x60"}, "8m", up="1x20 0x6 1x60"),
        Case(
            "one of two proxies is taken away",
            {'duet_draining{instance="b"}': "0x80", "duet_draining": "0x20 stale _x60"},
            "8m",
        ),
        Case("a program of another kind in the same job", {'up{job="all",instance="db:1"}': "0x60"}, "8m"),
    ),
}
