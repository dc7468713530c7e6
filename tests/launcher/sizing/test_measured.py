"""What engines say of their memory when they start, and how it is told beside the plan."""

import pytest

from launcher.profile import Device
from launcher.sizing import history
from launcher.sizing.history import Planned, Record
from launcher.sizing.measured import Deviation, Measured, deviations, measured_of, sentence
from tests.launcher.sizing.models import GIB, engine

GPU = """\
(Worker_TP0 pid=41) INFO 11-30 10:00:00 [gpu_model_runner.py:5150] Model loading took 33.87 GiB memory and 41.2 seconds
(Worker_TP1 pid=42) INFO 11-30 10:00:01 [gpu_model_runner.py:5150] Model loading took 33.91 GiB memory and 41.9 seconds
(Worker_TP0 pid=41) INFO 11-30 10:00:20 [gpu_worker.py:759] Available KV cache memory: 35.1 GiB
(Worker_TP1 pid=42) INFO 11-30 10:00:20 [gpu_worker.py:759] Available KV cache memory: 34.98 GiB
(EngineCore pid=40) INFO 11-30 10:00:21 [kv_cache_utils.py:2327] GPU KV cache size: 229,248 tokens, Maximum \
concurrency for 32,768 tokens per request: 7.00x
(Worker_TP0 pid=41) INFO 11-30 10:00:40 [model_runner.py:1127] Graph capturing finished in 12 secs, took 0.82 GiB
(Worker_TP0 pid=41) INFO 11-30 10:00:40 [gpu_worker.py:1034] Free memory on device (78.61/79.19 GiB) on startup. \
Desired GPU memory utilization is (0.92, 72.85 GiB). Actual usage is 34.9 GiB for consumed memory (weights + \
non-torch), 2.85 GiB for peak activation, and 0.82 GiB for CUDAGraph memory. Replace gpu_memory_utilization config \
with `--kv-cache-memory=36000000000` (33.53 GiB) to fit into requested memory. Current kv cache memory in use is 35.1 \
GiB.
"""
CPU = """\
(EngineCore pid=7) INFO 11-30 02:57:57 [cpu_worker.py:234] Explicitly set (0.25/23.54) GiB for KV cache on node 0.
(EngineCore pid=7) INFO 11-30 02:57:57 [kv_cache_utils.py:2327] CPU KV cache size: 11,648 tokens, Maximum concurrency \
for 2,048 tokens per request: 5.69x
"""


def test_the_device_that_has_most_and_the_cache_that_is_smallest_decide():
    assert measured_of(GPU.splitlines()) == Measured(
        weights=round(33.91 * GIB),
        consumed=round(34.9 * GIB),
        activations=round(2.85 * GIB),
        graphs=round(0.82 * GIB),
        kv_memory=round(34.98 * GIB),
        tokens=229_248,
        length=32_768,
        concurrency=7.0,
    )


def test_a_cpu_says_what_it_was_given():
    found = Measured(kv_memory=GIB // 4, tokens=11_648, length=2048, concurrency=5.69)
    assert measured_of(CPU.splitlines()) == found


def test_a_cache_of_a_given_size_is_told_on_a_gpu_too():
    line = "Initial free memory 78.6 GiB, reserved 4.0 GiB memory for KV Cache as specified by the configuration"
    assert measured_of([line, "reserved 3 GiB of something else"]) == Measured(kv_memory=4 * GIB)


def test_older_engines_say_concurrency_on_a_line_of_its_own():
    lines = ["GPU KV cache size: 158,656 tokens", "Maximum concurrency for 32,768 tokens per request: 4.84x"]
    assert measured_of(lines) == Measured(tokens=158_656, length=32_768, concurrency=4.84)


@pytest.mark.parametrize("lines", [[], ["Model loading took long", "KV cache size: many tokens"]])
def test_a_log_that_says_nothing_is_empty(lines):
    assert measured_of(lines) == Measured()


def test_what_is_as_planned_and_what_is_off_are_told_in_one_line():
    planned = engine("llama-3.1-70b-w8a8", "--tensor-parallel-size", "2", "--max-model-len", "32768", card=79.19)
    real = measured_of(GPU.splitlines())
    found = {each.figure: each for each in deviations(planned, real)}
    assert set(found) == {"weights", "KV cache", "KV tokens", "requests at once"}
    assert abs(found["weights"].off) < 0.01
    told = sentence("decode-0", found.values())
    assert told.startswith("decode-0: weights 33.91 GiB, planned 33.8")
    assert "KV tokens 229,248 tokens, planned " in told


def test_an_exact_plan_is_said_to_be_one():
    planned = engine(
        "llama-3.2-1b", "--kv-cache-memory-bytes", "256M", "--max-model-len", "2048", device=Device.CPU, card=16
    )
    real = Measured(kv_memory=GIB // 4, tokens=planned.kv.tokens)
    assert sentence("decode-0", deviations(planned, real)) == (
        f"decode-0: KV cache 0.25 GiB as planned; KV tokens {planned.kv.tokens:,} tokens as planned"
    )


def test_nothing_to_compare_is_nothing_to_tell():
    assert sentence("x", deviations(engine("llama-3.1-8b", card=None), Measured(tokens=5))) == ""


def test_requests_of_another_length_are_not_compared():
    planned = engine("llama-3.1-8b", "--max-model-len", "4096")
    assert not [*deviations(planned, Measured(length=100, concurrency=2.0))]


def test_how_far_off_is_a_share_of_what_came():
    assert Deviation("x", 110.0, 100.0, "bytes").off == pytest.approx(0.1)
    assert Deviation("x", 110.0, 0.0, "bytes").off == 0.0


def record(instance, at, key="k", tokens=5):
    return Record(at, instance, key, Planned(1, 2, 3, 4.0), Measured(tokens=tokens))


def test_starts_are_kept_and_the_last_of_each_engine_is_found(tmp_path):
    told = [record("a", 1.0, tokens=1), record("b", 2.0, "other", 2), record("a", 3.0, tokens=3)]
    for each in told:
        history.append(tmp_path, each)
    assert [*history.read(tmp_path)] == told
    assert history.latest(history.read(tmp_path)) == {"a": told[2], "b": told[1]}
    assert history.by_key(history.read(tmp_path)) == {"k": Measured(tokens=3), "other": Measured(tokens=2)}


def test_only_the_last_thousand_starts_are_kept(tmp_path):
    (tmp_path / history.FILE).write_text("x\n" * 5000)
    history.append(tmp_path, record("a", 1.0))
    assert len((tmp_path / history.FILE).read_text().splitlines()) == 1000


@pytest.mark.parametrize("content", [b"", b"\xff\n", b'{"at": 1}\n', b"not json\n"])
def test_lines_that_are_not_understood_are_passed_over(tmp_path, content):
    (tmp_path / history.FILE).write_bytes(content)
    assert [*history.read(tmp_path)] == []


def test_no_file_is_no_history(tmp_path):
    assert [*history.read(tmp_path)] == []
