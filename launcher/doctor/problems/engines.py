"""Instances that do not serve."""

from collections.abc import Iterator

from launcher.doctor.problem import Check, Evidence, Problem, Severity
from launcher.doctor.sight import LATELY, Sight
from launcher.local.deployment import State


def _crashed(sight: Sight) -> Iterator[Evidence]:
    for each in sight.deployment.instances if sight.deployment else ():
        if each.state is State.FAILED:
            yield Evidence(each.name, f"given up after {each.restarts} restarts: {each.reason}")


def _restarted(sight: Sight) -> Iterator[Evidence]:
    for each in sight.deployment.instances if sight.deployment else ():
        lately = each.started_at is not None and sight.at - each.started_at < LATELY
        if each.state is not State.FAILED and each.restarts and lately:
            yield Evidence(
                each.name,
                f"{each.restarts} {'restart' if each.restarts == 1 else 'restarts'}, the last because: {each.reason}",
            )


def _down(sight: Sight) -> Iterator[Evidence]:
    if sight.proxy is None:
        yield from _does_not_answer(sight)
        return
    for (name,), healthy in sight.proxy.by("duet_instance_healthy", "engine").items():
        if not healthy and not sight.proxy.now("duet_engine_frozen", engine=name):
            yield Evidence(name, sight.reasons.get(name) or "the proxy's probes fail")


def _does_not_answer(sight: Sight) -> Iterator[Evidence]:
    for each in sight.status.instances if sight.status else ():
        if each.state is State.READY and each.health != "ok":
            yield Evidence(each.name, each.health)


def _frozen(sight: Sight) -> Iterator[Evidence]:
    page = sight.proxy
    for (name,), frozen in page.by("duet_engine_frozen", "engine").items() if page else ():
        if page and frozen and not page.now("duet_instance_healthy", engine=name):
            running = sight.engine(name).now("duet_engine_requests_running")
            told = "" if running is None else f"; {running:.0f} requests run there, by its own count"
            yield Evidence(name, f"{sight.reasons.get(name) or 'it has work, but none of its counters moves'}{told}")


def _breakers(sight: Sight) -> Iterator[Evidence]:
    for (name,), is_open in sight.proxy.by("duet_breaker_open", "engine").items() if sight.proxy else ():
        if is_open:
            kinds = sight.requests.counted_by("duet_upstream_failures_total", "kind", engine=name)
            told = ", ".join(f"{count:.0f} x {kind}" for (kind,), count in kinds.items())
            yield Evidence(name, sight.reasons.get(name) or told or "failures in a row")


def _tells_nothing(sight: Sight) -> Iterator[Evidence]:
    for (name,), up in sight.engines.by("duet_engine_up", "engine").items() if sight.engines else ():
        if not up and sight.proxy is not None and sight.proxy.now("duet_instance_healthy", engine=name):
            yield Evidence(name, "it answers /health, but its /metrics are not vLLM's")


CHECKS = (
    Check(
        Problem(
            "crash-loop",
            Severity.CRITICAL,
            "An instance is down for good.",
            "It ended by itself again and again: too little memory, a bad checkpoint, a port that is taken.",
            "`launcher status`; `launcher logs INSTANCE`: the engine's last lines tell",
            "Repair what the log names (findings from the log are told below), then `launcher restart INSTANCE`.",
        ),
        _crashed,
    ),
    Check(
        Problem(
            "engine-down",
            Severity.CRITICAL,
            "An instance gets no requests: it does not answer, or its health check fails.",
            "It was killed (out of memory?), crashed, still loads, or the network between proxy and engine is cut.",
            "`duet_instance_healthy`; `launcher status`; `launcher logs INSTANCE`; `dmesg` for the kernel's OOM killer",
            "What has ended is started again by itself; if it stays away, its log tells why. What runs but does not "
            "answer is not: `launcher restart INSTANCE --no-drain`.",
            "DuetEngineDown",
        ),
        _down,
    ),
    Check(
        Problem(
            "engine-frozen",
            Severity.CRITICAL,
            "An engine has requests, answers /health, and generates nothing.",
            "A GPU or NCCL hang, a deadlock in the engine, or a transfer that never ends. /health does not notice.",
            "`duet_engine_frozen`; `duet_in_flight` above 0 while `duet_engine_generation_tokens_total` stands still; "
            "`py-spy dump --pid PID` of the engine core",
            "It is out of rotation already. `launcher restart INSTANCE --no-drain`. If single steps of yours take "
            "longer "
            "than `proxy.frozen_after`, raise that.",
            "DuetEngineFrozen",
        ),
        _frozen,
    ),
    Check(
        Problem(
            "breaker-open",
            Severity.WARNING,
            "Requests are kept away from an instance after failures.",
            "Requests to it failed several times in a row; it is tried again after a pause that doubles.",
            "`duet_breaker_open`, `duet_upstream_failures_total{engine,kind}`; `/ready` tells the reason",
            "Follow the kind of failure, see requests-failing.",
            "DuetBreakerOpen",
        ),
        _breakers,
    ),
    Check(
        Problem(
            "engine-restarting",
            Severity.WARNING,
            "An instance ended by itself in the last hour, and was started again.",
            "It crashed or was killed, e.g. for lack of memory. Three such ends in five minutes of service: it stays "
            "down.",
            "`launcher status` (restarts, last reason); `launcher logs INSTANCE`",
            "Read the lines before its end.",
        ),
        _restarted,
    ),
    Check(
        Problem(
            "engine-metrics-missing",
            Severity.WARNING,
            "An engine serves, but tells no metrics.",
            "It runs with --disable-log-stats, is no vLLM, or a version that calls them otherwise. Frozen engines, "
            "silent PD "
            "and speculation cannot be judged then.",
            "`duet_engine_up`; `curl ENGINE/metrics`",
            "Remove --disable-log-stats from `engine_args`; use a supported version of vLLM (docs/metrics.md).",
            "DuetEngineMetricsMissing",
        ),
        _tells_nothing,
    ),
)
