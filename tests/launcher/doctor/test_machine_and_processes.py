"""Troubles of processes, logs and machines are named, each by what somebody would see of it."""

from dataclasses import replace

import pytest

from launcher.doctor.examine import examine
from launcher.doctor.problems import CHECKS
from launcher.doctor.series import Series, read
from launcher.doctor.sight import Host, Sight
from launcher.local.deployment import Deployment, InstanceState, State
from launcher.log_signatures import SIGNATURES
from launcher.quantize.checked import Kept
from launcher.quantize.drift import Level
from tests.launcher.builders import plan
from tests.launcher.doctor.injected import INJECTIONS

GB = 2**30
HOST = Host(64 * GB, 32 * GB, 0, 100 * GB, 200 * GB, GB, load=3.0, cores=2)
NOW = 1_000_000.0
INSTANCE = InstanceState("decode-0", "decode", "http://127.0.0.1:1", State.READY, pid=1, started_at=NOW - 60)
DEPLOYMENT = Deployment("demo", 1, NOW - 9000, "mark", "http://127.0.0.1:2", "m", True, 1.0, (INSTANCE,))
PROXY = Series(read("duet_admitted 0\n"))
WELL = Sight(NOW, 10.0, deployment=DEPLOYMENT, proxy=PROXY, host=HOST)
GPU = "GPU-1"


def on_a_gpu(utilisation: float) -> Sight:
    planned = plan("demo")
    engines = tuple(replace(each, devices=(GPU,)) for each in planned.engines)
    told = 'duet_engine_up{{engine="{0}"}} 1\nduet_engine_requests_running{{engine="{0}"}} 3\n'
    pages = Series(read("".join(told.format(each.name) for each in engines)))
    host = replace(HOST, gpu_utilisation={GPU: utilisation})
    return replace(WELL, plan=replace(planned, engines=engines), engines=pages, host=host)


def ended(state: State, restarts: int, started_at: float = NOW - 60) -> Sight:
    instance = replace(INSTANCE, state=state, restarts=restarts, started_at=started_at, reason="killed by signal 9")
    return replace(WELL, deployment=replace(DEPLOYMENT, instances=(instance,)))


LOGS = {
    "port-taken": "OSError: [Errno 98] error while attempting to bind on address: address already in use",
    "no-room-for-kv-cache": "ValueError: No available memory for the cache blocks.",
    "memory-profiling-failed": "AssertionError: Error in memory profiling. Initial free memory 3",
    "device-taken": "ValueError: Free memory on device (2.1/79.1 GiB) on startup is less than desired GPU memory",
    "out-of-memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "torchvision-mismatch": "RuntimeError: operator torchvision::nms does not exist",
    "engine-not-installed": "ModuleNotFoundError: No module named 'vllm'",
    "wrong-engine-argument": "vllm serve: error: unrecognized arguments: --kv-magic",
    "model-not-fetched": "OSError: no/such is not a local folder and is not a valid model identifier listed on the hub",
    "kv-layout-mismatch": "RuntimeError: NIXL compatibility hash mismatch. Local: ab, remote: cd",
    "kv-transfer-broken": "nixl_cu12._bindings.nixlBackendError: NIXL_ERR_BACKEND",
    "nccl-failed": "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1, unhandled system error",
    "device-failed": "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "disk-full": "OSError: [Errno 28] No space left on device",
}
SEEN = {
    "crash-loop": ended(State.FAILED, 3),
    "engine-restarting": ended(State.READY, 1),
    "device-idle": on_a_gpu(0.2),
    "side-channel-closed": replace(WELL, host=replace(HOST, closed={"prefill-0": "127.0.0.1:5600 (refused)"})),
    "host-memory-low": replace(WELL, host=replace(HOST, memory_available=GB, swap_used=GB)),
    "disk-almost-full": replace(WELL, host=replace(HOST, disk_free=GB, shared_free=2**20)),
    "cpu-overcommitted": replace(WELL, host=replace(HOST, load=9.0)),
    "calibration-drift": replace(WELL, checked=Kept(Level.WARNING, ("Words are different.",), NOW)),
    "open-files-low": replace(WELL, host=replace(HOST, open_files={"proxy": (1000, 1024)})),
    **{id_: replace(WELL, logs={"decode-0": f"INFO all is well\n{line}\nINFO more"}) for id_, line in LOGS.items()},
}


def named(sight: Sight) -> set[str]:
    return {finding.problem.id for finding in examine(sight)}


@pytest.mark.parametrize("name", SEEN)
def test_it_is_named_and_nothing_else_is(name):
    assert named(SEEN[name]) == {name}


@pytest.mark.parametrize(
    "sight", [WELL, on_a_gpu(0.9), ended(State.READY, 1, NOW - 7200), Sight(deployment=DEPLOYMENT, proxy=PROXY)]
)
def test_of_what_is_well_or_long_ago_or_unknown_nothing_is_said(sight):
    assert named(sight) == set()


def test_every_problem_is_triggered_by_a_test():
    assert {check.problem.id for check in CHECKS} == set(SEEN) | set.union(
        *(each.named for each in INJECTIONS.values())
    )


def test_each_problem_has_an_id_of_its_own_and_says_all_that_helps():
    problems = [check.problem for check in CHECKS]
    assert len({each.id for each in problems}) == len(problems)
    for each in problems:
        assert all((each.symptom, each.cause, each.look_at, each.fix))


def test_each_signature_is_found_in_the_line_that_is_about_it():
    for each in SIGNATURES:
        assert each.pattern.search(LOGS[each.id])


def test_a_line_of_a_log_is_shown_without_what_would_change_a_terminal():
    sight = replace(WELL, logs={"decode-0": "\x1b[31mCUDA out of memory\x1b[0m"})
    (finding,) = examine(sight)
    assert "\x1b" not in finding.evidence[0].text


def test_what_was_counted_before_the_window_counts_only_when_the_window_is_too_quiet():
    served = 'duet_requests_total{{outcome="ok"}} {ok}\nduet_requests_total{{outcome="failed"}} {failed}\n'
    threshold = 'duet_alert_threshold{alert="failed_share"} 0.01\n'

    def seen(before: dict[str, int], now: dict[str, int]) -> Sight:
        pages = [read(served.format(**counts) + threshold) for counts in (now, before)]
        return replace(WELL, proxy=Series(*pages))

    assert named(seen({"ok": 10, "failed": 10}, {"ok": 100, "failed": 10})) == set()
    assert named(seen({"ok": 10, "failed": 10}, {"ok": 11, "failed": 10})) == {"requests-failing"}
    assert named(seen({"ok": 10, "failed": 0}, {"ok": 50, "failed": 10})) == {"requests-failing"}
