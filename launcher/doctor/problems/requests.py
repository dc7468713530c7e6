"""What clients notice."""

from collections.abc import Iterator

from launcher.advice.window import quantile
from launcher.doctor.problem import Check, Evidence, Problem, Severity
from launcher.doctor.sight import Sight

_BROKEN = ("no_prefill", "no_decode", "no_pair", "prefill_failed", "prefill_without_kv", "decode_failed")
"""Reasons for a bypass that say that something does not work."""


def _ttft(sight: Sight) -> Iterator[Evidence]:
    limit, found = sight.threshold("ttft"), quantile(0.95, [sight.requests.buckets("duet_ttft_seconds")])
    if limit is None or found is None or found <= limit:
        return
    parts = {"in prefill": sight.requests.buckets("duet_handoff_seconds")}
    parts |= {
        f"in the queue of {name}": sight.engine(name).buckets("duet_engine_queue_seconds")
        for name in sight.engine_names
    }
    where = ", ".join(
        f"{what} {p95 * 1000:.0f} ms" for what, part in parts.items() if (p95 := quantile(0.95, [part])) is not None
    )
    text = f"p95 is {found * 1000:.0f} ms {sight.period}, wanted at most {limit * 1000:.0f} ms"
    yield Evidence("proxy", f"{text}; p95 {where}" if where else text)


def _failing(sight: Sight) -> Iterator[Evidence]:
    limit, total = sight.threshold("failed_share"), sight.requests.counted("duet_requests_total")
    failed = sum(sight.requests.counted("duet_requests_total", outcome=each) for each in ("failed", "broken_off"))
    if limit is None or not total or failed / total <= limit:
        return
    kinds = sight.requests.counted_by("duet_upstream_failures_total", "engine", "kind")
    causes = ", ".join(f"{count:.0f} x {kind} at {engine}" for (engine, kind), count in kinds.items())
    text = f"{failed:.0f} of {total:.0f} requests {sight.period} ({failed / total:.0%}, {limit:.0%} are tolerated)"
    yield Evidence("proxy", f"{text}; {causes}" if causes else text)


def _timeouts(sight: Sight) -> Iterator[Evidence]:
    for (engine,), count in sight.requests.counted_by("duet_upstream_failures_total", "engine", kind="timeout").items():
        yield Evidence(engine, f"{count:.0f} requests got no answer in time {sight.period}")


def _fallback(sight: Sight) -> Iterator[Evidence]:
    limit, total = sight.threshold("fallback_share"), sight.requests.counted("duet_requests_total")
    reasons = {
        reason: count
        for (reason,), count in sight.requests.counted_by("duet_pd_bypassed_total", "reason").items()
        if reason in _BROKEN
    }
    share = sum(reasons.values()) / total if total else 0.0
    if limit is None or share <= limit:
        return
    told = ", ".join(f"{count:.0f} x {reason}" for reason, count in reasons.items())
    yield Evidence("proxy", f"{share:.0%} of the requests {sight.period} ({limit:.0%} are tolerated): {told}")


def _refused(sight: Sight) -> Iterator[Evidence]:
    for reason in ("Overloaded", "NoRoom"):
        if count := sight.requests.counted("duet_refused_total", reason=reason):
            yield Evidence("proxy", f"{count:.0f} {sight.period}: {reason}")


def _unseen(sight: Sight) -> Iterator[Evidence]:
    serves = sight.deployment is not None and sight.deployment.ready
    if sight.proxy is None and (serves or sight.deployment is None):
        yield Evidence("proxy", next((each for each in sight.not_seen if each.startswith("the proxy")), "no metrics"))


CHECKS = (
    Check(
        Problem(
            "target-missing",
            Severity.CRITICAL,
            "The proxy tells no metrics.",
            "It does not run or hangs; the scrape asks the wrong address (with `proxy.admin`, metrics are there only); "
            "or it needs a client's key.",
            "`launcher status`; `curl -i` the address that is scraped; in Prometheus the page Targets",
            "`launcher restart proxy`, or `launcher up` where nothing runs; correct the address; give operators an "
            "address of their own (`proxy.admin`) or keys (`proxy.admin_keys`).",
            "DuetTargetMissing",
        ),
        _unseen,
    ),
    Check(
        Problem(
            "requests-failing",
            Severity.CRITICAL,
            "Requests fail or break off.",
            "An instance is down, frozen or overloaded, and the failure policy is not `aggregate`, or decode itself "
            "fails.",
            "`duet_requests_total{outcome}`, `duet_upstream_failures_total{engine,kind}`; the proxy's log, by request "
            "id",
            "Follow the kind: `unreachable` and `cut`: the engine died, see its log; `timeout`: see requests-time-out; "
            "`error`: the engine's own message is in its log. `launcher restart INSTANCE` brings a bad one back.",
            "DuetRequestsFailing",
        ),
        _failing,
    ),
    Check(
        Problem(
            "requests-time-out",
            Severity.CRITICAL,
            "Requests get no answer in time.",
            "The KV transfer hangs (network, UCX or NCCL settings, side-channel ports closed, prefill and decode do "
            "not "
            "fit), an engine is frozen, or prompts need longer than `proxy.timeouts` allows.",
            "`launcher status --pairs`, `launcher prove`; the engines' logs for NIXL, UCX or NCCL; "
            '`duet_upstream_failures_total{kind="timeout"}`',
            "Repair the network or the settings; until then serve without PD: `--set proxy.failure_policy=aggregate`, "
            "or "
            "drain the prefill instances (`launcher drain prefill-0`). If only long prompts are affected, raise "
            "`proxy.timeouts.prefill.first_byte`.",
        ),
        _timeouts,
    ),
    Check(
        Problem(
            "ttft-high",
            Severity.WARNING,
            "The first token comes too late.",
            "More prompts arrive than prefill can compute; long prompts hold short ones up; or the KV hand-over is "
            "slow.",
            "`duet_ttft_seconds`, `duet_handoff_seconds` (prefill), `duet_handover_seconds` (KV and decode), "
            "`duet_engine_queue_seconds`, `duet_admission_wait_seconds`",
            "Where the queue is at prefill: more prefill instances (`roles.prefill.replicas`), or "
            "`proxy.selection.prefill: "
            "ttft`; where it is the hand-over, see kv-transfer-slow; `launcher advise --window 60` tells what would "
            "help.",
            "DuetTTFTHigh",
        ),
        _ttft,
    ),
    Check(
        Problem(
            "fallback-share-high",
            Severity.WARNING,
            "Requests are served without PD although it is configured.",
            "Prefill is down or fails, or no pair works; the failure policy `aggregate` hides that from clients.",
            "`duet_pd_bypassed_total{reason}`; the header `X-Duet-Bypass`",
            "`no_prefill`, `prefill_failed`: see that instance's log; `no_pair`: `launcher status --pairs` tells the "
            "reason "
            "for each pair.",
            "DuetFallbackShareHigh",
        ),
        _fallback,
    ),
    Check(
        Problem(
            "requests-refused",
            Severity.WARNING,
            "Clients are told to come back later (429 or 503).",
            "More requests at a time than `proxy.admission` lets in, or more bytes of bodies.",
            "`duet_refused_total{reason}`, `duet_waiting`, `duet_held_bytes`",
            "If engines have room (`duet_engine_kv_cache_usage_ratio`, `duet_engine_requests_waiting`), raise "
            "`proxy.admission.concurrency` or `memory`; else add instances.",
        ),
        _refused,
    ),
)
