"""Cases of alerts about requests. One sample in 15 s: 4 are a minute, 40 ten."""

from collections.abc import Mapping

from tests.alerts.rules import Case, Fires

_OK = 'duet_requests_total{endpoint="completions",path="pd",model="m",status="200",outcome="ok"}'
_FAILED = 'duet_requests_total{endpoint="completions",path="none",model="m",status="502",outcome="failed"}'
_BROKEN = 'duet_requests_total{endpoint="completions",path="pd",model="m",status="200",outcome="broken_off"}'
_LEFT = 'duet_requests_total{endpoint="completions",path="pd",model="m",status="499",outcome="left"}'
_REJECTED = 'duet_requests_total{endpoint="completions",path="none",model="m",status="400",outcome="rejected"}'


def _ttft(within: Mapping[str, str]) -> dict[str, str]:
    return {
        f'duet_ttft_seconds_bucket{{endpoint="completions",path="pd",model="m",le="{le}"}}': values
        for le, values in within.items()
    }


def _fallen(reason: str) -> str:
    return f'duet_pd_bypassed_total{{reason="{reason}"}}'


def _failing(share: str) -> Fires:
    return Fires(
        {},
        f"Requests fail: {share} of the last 5 minutes'",
        f"Of the requests to duet {share} got no answer or half of one; at most 1% may.",
        "critical",
    )


def _late(seconds: str) -> Fires:
    return Fires(
        {"model": "m"},
        f"Answers begin late: {seconds} to the first token (p95)",
        f"Of the streamed answers of m at duet one in twenty waits for its first token longer than {seconds}; the "
        "objective is 500ms.",
    )


def _fallback(share: str) -> Fires:
    return Fires(
        {},
        f"PD is broken for {share} of the requests",
        f"Of the requests to duet {share} were served by one engine alone because something is broken; at most 5% "
        "should be.",
    )


CASES: Mapping[str, tuple[Case, ...]] = {
    "DuetRequestsFailing": (
        Case("2 of 100 fail", {_OK: "0+98x80", _FAILED: "0+2x80"}, "15m", (_failing("2%"),)),
        Case("2 of 100 are broken off", {_OK: "0+98x80", _BROKEN: "0+2x80"}, "15m", (_failing("2%"),)),
        Case("all fail", {_FAILED: "0+1x80"}, "15m", (_failing("100%"),)),
        Case("a burst within one scrape", {_OK: "0+1x80", _FAILED: "_x40 20x80"}, "13m", (_failing("50%"),)),
        Case(
            "a burst after a restart of the proxy",
            {_OK: "0+1x40 0+1x40", _FAILED: "50x40 stale 30x80"},
            "13m",
            (_failing("73.17%"),),
        ),
        Case("just not too many", {_OK: "0+991x80", _FAILED: "0+9x80"}, "15m"),
        Case("two at night", {_OK: "0+0x80", _FAILED: "_x40 2x80"}, "13m"),
        Case("long ago", {_OK: "0+1x80", _FAILED: "_x20 20x80"}, "15m"),
        Case("no traffic any more", {_OK: "50x80", _FAILED: "50x80"}, "15m"),
        Case("clients leave, or are wrong", {_OK: "0+1x80", _LEFT: "0+1x80", _REJECTED: "0+1x80"}, "15m"),
        Case(
            "a proxy that is scraped from now on", {_OK: "_x40 1000x80", _FAILED: "_x40 50x80"}, "13m", up="_x40 1x80"
        ),
        Case(
            "a proxy that was away for a scrape, with failures of long ago",
            {_OK: "0+1x39 stale 41+1x80", _FAILED: "50x39 stale 50x80"},
            "15m",
            up="1x39 0 1x80",
        ),
        Case("more may fail here", {_OK: "0+98x80", _FAILED: "0+2x80"}, "15m", thresholds={"failed_share": 0.03}),
    ),
    "DuetTTFTHigh": (
        Case("one in ten", _ttft({"0.5": "0+90x80", "1": "0+100x80", "+Inf": "0+100x80"}), "20m", (_late("750ms"),)),
        Case(
            "other buckets, none at the objective",
            _ttft({"0.3": "0+0x80", "0.7": "0+100x80", "+Inf": "0+100x80"}),
            "20m",
            (_late("680ms"),),
        ),
        Case("one in thirty", _ttft({"0.5": "0+97x80", "1": "0+100x80", "+Inf": "0+100x80"}), "20m"),
        Case(
            "one slow answer, and nothing else all the time",
            _ttft({"0.5": "0x100", "1": "0x20 1x80", "+Inf": "0x20 1x80"}),
            "16m",
        ),
        Case("not yet for long", _ttft({"0.5": "0x80", "1": "0+1x80", "+Inf": "0+1x80"}), "9m"),
        Case("no traffic", _ttft({"0.5": "7x80", "1": "100x80", "+Inf": "100x80"}), "20m"),
        Case(
            "slower is meant here",
            _ttft({"0.5": "0+90x80", "1": "0+100x80", "+Inf": "0+100x80"}),
            "20m",
            thresholds={"ttft": 0.8},
        ),
    ),
    "DuetFallbackShareHigh": (
        Case("all, for a while", {_OK: "0+1x80", _fallen("no_pair"): "_x20 0+1x60"}, "15m", (_fallback("100%"),)),
        Case(
            "for several reasons",
            {_OK: "0+100x80", _fallen("decode_failed"): "0+3x80", _fallen("no_prefill"): "0+3x80"},
            "15m",
            (_fallback("6%"),),
        ),
        Case(
            "a burst within one scrape",
            {_OK: "0+1x80", _fallen("prefill_failed"): "_x40 5x80"},
            "13m",
            (_fallback("25%"),),
        ),
        Case("just not too many", {_OK: "0+100x80", _fallen("no_pair"): "0+5x80"}, "15m"),
        Case(
            "as it was asked for", {_OK: "0+1x80", _fallen("short_prompt"): "0+1x80", _fallen("echo"): "0+1x80"}, "15m"
        ),
        Case("two", {_OK: "0+0x80", _fallen("no_pair"): "_x40 2x80"}, "13m"),
        Case("no traffic any more", {_OK: "50x80", _fallen("no_pair"): "50x80"}, "15m"),
        Case(
            "nothing but what Prometheus missed",
            {_OK: "_x40 50x80", _fallen("no_pair"): "_x40 50x80"},
            "13m",
            up="_x40 1x80",
        ),
    ),
}
