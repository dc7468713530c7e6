"""A deployment that works, in all that it shows: nothing may fire, whatever else happens to it."""

from collections.abc import Mapping

_PREFILL = 'engine="prefill-0",role="prefill"'
_DECODE = 'engine="decode-0",role="decode"'
_PAIR = 'prefill="prefill-0",decode="decode-0"'
_SERVED = 'endpoint="completions",path="pd",model="m"'
_TIMES = {"duet_ttft_seconds": _SERVED, "duet_handover_seconds": _PAIR}
_TIMES_OF_ENGINES = ("tpot_seconds", "kv_transfer_seconds")


def _engine(engine: str, count: str, level: str) -> dict[str, str]:
    told = f'{engine},rank="0",model="m"'
    counters = ("generation_tokens", "prompt_tokens", "preemptions", "kv_expired", "kv_read_late")
    return {
        f"duet_instance_healthy{{{engine}}}": level.format(1),
        f"duet_engine_up{{{engine}}}": level.format(1),
        **{f"duet_{name}{{{engine.partition(',')[0]}}}": level.format(0) for name in _LEVELS},
        **{f"duet_engine_{name}{{{told}}}": level.format(0) for name in _GAUGES},
        **{f"duet_engine_{name}_total{{{told}}}": count.format(100 if "tokens" in name else 0) for name in counters},
        f'duet_engine_requests_finished_total{{{told},reason="stop"}}': count.format(10),
        f'duet_engine_prompt_tokens_by_source_total{{{told},source="local_compute"}}': count.format(10),
        f'duet_engine_prompt_tokens_by_source_total{{{told},source="external_kv_transfer"}}': count.format(90),
        f"duet_engine_draft_tokens_total{{{told}}}": count.format(100),
        f"duet_engine_accepted_tokens_total{{{told}}}": count.format(80),
        **{
            f'duet_engine_{name}_bucket{{{told},le="{le}"}}': count.format(10)
            for name in _TIMES_OF_ENGINES
            for le in ("0.01", "+Inf")
        },
        f"duet_engine_tpot_seconds_sum{{{told}}}": count.format(0.1),
        f"duet_engine_tpot_seconds_count{{{told}}}": count.format(10),
    }


_LEVELS = ("instance_draining", "engine_frozen", "breaker_open")
_GAUGES = ("requests_running", "requests_waiting", "kv_cache_usage_ratio")


def shown(count: str, level: str) -> Mapping[str, str]:
    """All that alerts look at.

    ``count``: promtool's notation for a counter, with ``{0}`` for what comes in 15 s; ``level`` for a constant gauge.
    """
    return {
        f'duet_requests_total{{{_SERVED},status="200",outcome="ok"}}': count.format(10),
        f'duet_requests_total{{{_SERVED},status="502",outcome="failed"}}': count.format(0),
        'duet_pd_bypassed_total{reason="no_pair"}': count.format(0),
        f'duet_handovers_total{{{_PAIR},outcome="ok"}}': count.format(10),
        f'duet_handovers_total{{{_PAIR},outcome="failed"}}': count.format(0),
        **{
            f'{name}_bucket{{{labels},le="{le}"}}': count.format(10)
            for name, labels in _TIMES.items()
            for le in ("0.1", "+Inf")
        },
        f"duet_pair_usable{{{_PAIR}}}": level.format(1),
        f"duet_pair_proof_age_seconds{{{_PAIR}}}": level.format(30),
        **{
            f'duet_pair_verdict{{{_PAIR},verdict="{verdict}"}}': level.format(int(verdict == "proven"))
            for verdict in ("proven", "recomputed", "wrong_text", "failed", "undecided", "impossible")
        },
        'duet_pd_silently_off{decode="decode-0"}': level.format(0),
        'duet_breaker_opened_total{engine="decode-0"}': count.format(0),
        "duet_draining": level.format(0),
        'duet_reference_agreement{engine="decode-0"}': level.format(1),
        'duet_quantization_drift_ratio{model="small-int8"}': level.format(0.97),
        'duet_quantization_length_psi{model="small-int8"}': level.format(0.05),
        **_engine(_PREFILL, count, level),
        **_engine(_DECODE, count, level),
    }


BUSY = shown("0+{0}x160", "{0}x160")
IDLE = shown("{0}x160", "{0}x160")
STARTED_ANEW = shown("5000+{0}x40 stale _x3 0+{0}x100", "{0}x40 stale _x3 {0}x100")
SCRAPED_LATE = shown("_x40 5000+{0}x100", "_x40 {0}x100")
