"""Too much work for the memory, or too little for the device."""

from collections.abc import Iterator

from launcher.doctor.problem import Check, Evidence, Problem, Severity
from launcher.doctor.sight import Sight

_IDLE = 0.5
_ROOM = 0.5


def _full(sight: Sight) -> Iterator[Evidence]:
    limit = sight.threshold("kv_cache_usage")
    for name in sight.engine_names:
        engine = sight.engine(name)
        usage = engine.most("duet_engine_kv_cache_usage_ratio")
        if limit is not None and usage is not None and usage > limit:
            tokens, waiting = engine.now("duet_engine_kv_cache_tokens"), engine.now("duet_engine_requests_waiting")
            room = "" if tokens is None else f" of {tokens:,.0f} tokens"
            yield Evidence(name, f"{usage:.0%}{room} are in use, {waiting or 0:.0f} requests wait")


def _preempted(sight: Sight) -> Iterator[Evidence]:
    limit = sight.threshold("preempted_share")
    for name in sight.engine_names:
        engine = sight.engine(name)
        times, ended = (engine.counted(f"duet_engine_{what}_total") for what in ("preemptions", "requests_finished"))
        if limit is not None and times and times > limit * ended:
            yield Evidence(name, f"{times:.0f} preemptions beside {ended:.0f} finished requests {sight.period}")


def _batch(sight: Sight) -> Iterator[Evidence]:
    """Requests wait for room in the engine although its KV cache has room: the number of sequences is the limit."""
    for name in sight.engine_names:
        engine = sight.engine(name)
        waiting = engine.now("duet_engine_requests_waiting_by_reason", reason="capacity")
        usage = engine.most("duet_engine_kv_cache_usage_ratio")
        running = engine.now("duet_engine_requests_running")
        if waiting and running and usage is not None and usage < _ROOM:
            device = _utilisation(sight, name)
            told = "" if device is None else f"; its device works {device:.0%} of the time"
            yield Evidence(
                name, f"{running:.0f} run and {waiting:.0f} wait, while {usage:.0%} of the KV cache are in use{told}"
            )


def _idle(sight: Sight) -> Iterator[Evidence]:
    for name in sight.engine_names:
        device, running = _utilisation(sight, name), sight.engine(name).now("duet_engine_requests_running")
        if device is not None and device < _IDLE and running:
            yield Evidence(name, f"{running:.0f} requests run, and its device works {device:.0%} of the time")


def _utilisation(sight: Sight, name: str) -> float | None:
    """The least of an instance's devices; ``None`` without GPUs."""
    devices = next((each.devices for each in sight.plan.engines if each.name == name), ()) if sight.plan else ()
    known = sight.host.gpu_utilisation if sight.host else {}
    return min((known[device] for device in devices if device in known), default=None)


CHECKS = (
    Check(
        Problem(
            "kv-cache-full",
            Severity.WARNING,
            "An engine's KV cache is full: requests wait or are thrown out and computed again.",
            "Long prompts or answers, too many requests at a time, or weights and a draft that leave little room.",
            "`duet_engine_kv_cache_usage_ratio`, `duet_engine_preemptions_total`; `launcher size PROFILE`",
            "Smaller batches (`max_num_seqs`), an 8-bit KV cache or quantized weights, no draft, more instances; "
            "`launcher "
            "size` shows what each gives.",
            "DuetKVCacheFull",
        ),
        _full,
    ),
    Check(
        Problem(
            "preemption-storm",
            Severity.WARNING,
            "Requests are thrown out of the KV cache again and again, and computed anew.",
            "More requests run than the KV cache can hold to their end.",
            "`duet_engine_preemptions_total` beside `duet_engine_requests_finished_total`",
            "Lower `max_num_seqs`, or make room as under kv-cache-full.",
            "DuetPreemptionStorm",
        ),
        _preempted,
    ),
    Check(
        Problem(
            "batch-too-small",
            Severity.WARNING,
            "Throughput does not rise: requests wait though there is room.",
            "The engine may run fewer sequences, or take fewer tokens a step, than device and KV cache could.",
            '`duet_engine_requests_waiting_by_reason{reason="capacity"}` while `duet_engine_kv_cache_usage_ratio` is '
            "low; the device's utilisation (DCGM_FI_DEV_GPU_UTIL)",
            "Raise `max_num_seqs` and `max_num_batched_tokens` of the role.",
        ),
        _batch,
    ),
    Check(
        Problem(
            "device-idle",
            Severity.WARNING,
            "Throughput does not rise: the GPU is idle while requests run.",
            "Batches too small, prefill and decode in one engine's way of each other, or a CPU that cannot feed the "
            "GPU.",
            "DCGM_FI_DEV_GPU_UTIL or `nvidia-smi dmon`; the load of the CPU",
            "Larger batches; PD, if long prompts hold decoding up (`launcher advise --window 60`); more cores.",
        ),
        _idle,
    ),
)
