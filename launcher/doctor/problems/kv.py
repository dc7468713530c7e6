"""KV caches that do not get from prefill to decode, or not the right ones."""

from collections.abc import Iterator
from math import inf

from launcher.advice.window import quantile
from launcher.doctor.problem import Check, Evidence, Problem, Severity
from launcher.doctor.sight import Sight
from launcher.local.pairs import PairReport

_BAD = ("recomputed", "wrong_text", "failed")
_TRANSFERS = 20
"""Of fewer, p95 is the slowest alone, and the first one also opens the connection."""


def _pair(prefill: str, decode: str) -> str:
    return f"{prefill} to {decode}"


def _silently_off(sight: Sight) -> Iterator[Evidence]:
    for (decode,), off in sight.proxy.by("duet_pd_silently_off", "decode").items() if sight.proxy else ():
        if off and sight.proxy is not None:
            share = sight.proxy.now("duet_kv_received_share", decode=decode)
            told = "" if share is None else f"; of the last minute's prompt tokens {share:.0%} came from prefill"
            yield Evidence(decode, f"the last canary was answered, but its prompt was computed there{told}")


def _canary(sight: Sight) -> Iterator[Evidence]:
    for verdict in _BAD:
        page = sight.proxy
        found = page.by("duet_pair_verdict", "prefill", "decode", verdict=verdict) if page else {}
        for (prefill, decode), is_so in found.items():
            if is_so:
                pairs = sight.pairs.pairs if sight.pairs else ()
                proof = next((each.proof for each in pairs if (each.prefill, each.decode) == (prefill, decode)), None)
                yield Evidence(_pair(prefill, decode), f"{verdict}: {proof.reason}" if proof else verdict)


def _overdue(sight: Sight) -> Iterator[Evidence]:
    limit = sight.threshold("canary_age")
    ages = sight.proxy.by("duet_pair_proof_age_seconds", "prefill", "decode") if sight.proxy else {}
    for (prefill, decode), age in ages.items():
        if limit is not None and age > limit:
            yield Evidence(_pair(prefill, decode), f"the last one that decided anything was {age:.0f} s ago")


def _out(sight: Sight) -> Iterator[Evidence]:
    usable = sight.proxy.by("duet_pair_usable", "prefill", "decode") if sight.proxy else {}
    pairs = sight.pairs.pairs if sight.pairs else ()
    rows: dict[tuple[str, ...], PairReport] = {(each.prefill, each.decode): each for each in pairs}
    for key, works in usable.items():
        row = rows.get(key)
        if not works and (row is None or row.standing != "away"):
            yield Evidence(_pair(*key), row.reason if row and row.reason else "it gets no requests")


def _failing(sight: Sight) -> Iterator[Evidence]:
    limit = sight.threshold("handover_failures")
    totals = sight.requests.counted_by("duet_handovers_total", "prefill", "decode")
    for (prefill, decode), total in totals.items():
        labels = {"prefill": prefill, "decode": decode, "outcome": "failed"}
        failed = sight.requests.counted("duet_handovers_total", **labels)
        if limit is not None and failed / total > limit:
            yield Evidence(_pair(prefill, decode), f"{failed:.0f} of {total:.0f} failed {sight.period}")


def _slow(sight: Sight) -> Iterator[Evidence]:
    limit = sight.threshold("kv_transfer")
    for name in sight.engine_names:
        transfers = sight.engine(name).buckets("duet_engine_kv_transfer_seconds")
        found = quantile(0.95, [transfers])
        if limit is None or found is None or transfers.get(inf, 0) < _TRANSFERS:
            continue
        if found > limit:
            bytes_, seconds = (
                sight.engine(name).counted(f"duet_engine_kv_transfer_{what}_sum") for what in ("bytes", "seconds")
            )
            speed = f", {bytes_ / seconds / 1e9:.2f} GB/s" if seconds else ""
            yield Evidence(
                name, f"p95 of a transfer is {found * 1000:.0f} ms {sight.period} (wanted {limit * 1000:.0f} ms){speed}"
            )


def _expired(sight: Sight) -> Iterator[Evidence]:
    for name in sight.engine_names:
        if count := sight.engine(name).counted("duet_engine_kv_expired_total"):
            yield Evidence(name, f"{count:.0f} KV caches {sight.period}")


def _late(sight: Sight) -> Iterator[Evidence]:
    for name in sight.engine_names:
        engine = sight.engine(name)
        late = engine.counted("duet_engine_kv_read_late_total")
        # vLLM also counts one where a client leaves an answer: only beside expired KV does it tell of late readers.
        if late and engine.now("duet_engine_kv_expired_total"):
            yield Evidence(name, f"{late:.0f} times {sight.period}: as many answers may be wrong")


CHECKS = (
    Check(
        Problem(
            "kv-read-late",
            Severity.CRITICAL,
            "KV was read after prefill's lease had ended: answers may be wrong.",
            "Decode's queue is longer than the lease, so that prefill had freed the blocks and may have given them to "
            "others.",
            "`duet_engine_kv_read_late_total` beside `duet_engine_kv_expired_total`",
            "Raise `kv_transfer.lease`; add decode instances or lower `roles.decode.max_num_queued_reqs`, so that "
            "requests "
            "do not wait so long. Look at answers of that time.",
            "DuetKVReadLate",
        ),
        _late,
    ),
    Check(
        Problem(
            "pd-silently-off",
            Severity.WARNING,
            "All requests are answered, but decode computes the prompts itself: PD costs and gives nothing.",
            "Prefill and decode do not fit (block size, KV layout, hash seed), kv_transfer_params get lost, or the "
            "load "
            "policy recomputes after a transfer that failed.",
            "`launcher prove`; `duet_pd_silently_off`, `duet_kv_received_share`; "
            '`duet_engine_prompt_tokens_by_source_total{source="external_kv_transfer"}` at decode',
            "`launcher status --pairs` tells the reason; `launcher check PROFILE` finds what does not fit; look for "
            "NIXL in "
            "decode's log.",
            "DuetPDSilentlyOff",
        ),
        _silently_off,
    ),
    Check(
        Problem(
            "canary-failing",
            Severity.CRITICAL,
            "A canary through a pair does not come through.",
            "`recomputed`: see pd-silently-off. `wrong_text`: decode got other KV than the prompt's. `failed`: no "
            "answer: "
            "network, side channel, an instance that hangs.",
            "`launcher prove`; `duet_pair_verdict`",
            "The pair is out of use already, others go on. Follow the reason; `wrong_text`: compare KV dtype, model "
            "and "
            "block size of both (`launcher check`), and do not put it back by hand.",
            "DuetCanaryFailing",
        ),
        _canary,
    ),
    Check(
        Problem(
            "pair-out-of-use",
            Severity.WARNING,
            "A pair of a prefill and a decode instance gets no requests.",
            "Its last hand-over or canary failed, or the two do not agree on model, KV dtype or layout.",
            "`launcher status --pairs`; `duet_pair_usable`",
            "Follow the reason; `launcher prove` tries it now; `launcher restart INSTANCE` when one of them is blamed.",
            "DuetPairOutOfUse",
        ),
        _out,
    ),
    Check(
        Problem(
            "handovers-failing",
            Severity.WARNING,
            "Hand-overs of KV fail.",
            "Network or side channel between the two; prefill was restarted and decode knows its old identity; the "
            "lease "
            "ends before decode reads.",
            '`duet_handovers_total{outcome="failed"}`, `duet_engine_kv_failed_transfers_total`; decode\'s log',
            "Check that decode reaches prefill's side channel (`launcher plan` shows the port); restart the instance "
            "that "
            "all failing pairs have in common.",
            "DuetHandoversFailing",
        ),
        _failing,
    ),
    Check(
        Problem(
            "kv-transfer-slow",
            Severity.WARNING,
            "Moving the KV cache takes long.",
            "It goes over TCP in place of RDMA or NVLink, through a busy network, or prompts are very long.",
            "`duet_engine_kv_transfer_seconds`, `duet_pair_kv_bytes_per_second`; the engines' log at the start names "
            "UCX's "
            "transport",
            "Set UCX_TLS and UCX_NET_DEVICES for the fast network (`env` of the profile); put prefill and decode close "
            "together; an 8-bit KV cache halves the bytes; `proxy.pd.shorter_than` spares short prompts the way.",
            "DuetKVTransferSlow",
        ),
        _slow,
    ),
    Check(
        Problem(
            "kv-expired",
            Severity.WARNING,
            "KV caches that prefill computed were never taken.",
            "Decode is too busy to take them before the lease ends, clients leave, or decode dies between the two "
            "steps.",
            "`duet_engine_kv_expired_total`, `duet_kv_stranded_total`, `duet_client_disconnects_total`",
            "If decode's queue is long: more decode instances, or a longer `kv_transfer.lease`.",
            "DuetKVExpired",
        ),
        _expired,
    ),
    Check(
        Problem(
            "canary-overdue",
            Severity.WARNING,
            "Nothing is known of a pair for long: no canary decided anything.",
            "Instances are so busy that canaries end undecided, or the proxy's worker hangs.",
            '`duet_pair_proof_age_seconds`, `duet_canaries_total{verdict="undecided"}`',
            "Requests decide meanwhile, so watch hand-overs; raise `proxy.canary.timeout`, or add capacity.",
            "DuetCanaryOverdue",
        ),
        _overdue,
    ),
)
