"""What an engine's log tells while it loads and when it dies."""

import pytest

from launcher.loading import STAGES
from launcher.local.load_progress import LoadProgress, last_lines
from launcher.log_signatures import likely_cause, wanted_memory

LOG = """\
INFO 11-03 10:00:01 [importing.py:68] Triton is installed, but doesn't include CPU backend. Disabling Triton.
(APIServer pid=7) INFO 11-03 10:00:09 [utils.py:233] non-default args: {'port': 8100, 'enforce_eager': True}
(APIServer pid=7) INFO 11-03 10:00:10 [model.py:514] Resolved architecture: LlamaForCausalLM
(APIServer pid=7) INFO 11-03 10:00:10 [model.py:1661] Using max model len 2048
(EngineCore pid=9) INFO 11-03 10:00:19 [cpu_model_runner.py:62] Starting to load model /m...
(EngineCore pid=9) INFO 11-03 10:00:20 [default_loader.py:291] Loading weights took 0.35 seconds
(EngineCore pid=9) INFO 11-03 10:00:20 [kv_cache_utils.py:1291] GPU KV cache size: 11,648 tokens
(EngineCore pid=9) INFO 11-03 10:00:23 [core.py:259] init engine (profile, kv cache, warmup model) took 2.91 seconds
(APIServer pid=7) INFO:     Application startup complete.
""".splitlines()


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "engine.log"
    file.touch()
    return file


def add(log, text):
    with log.open("a") as file:
        file.write(text)


def test_a_start_goes_through_all_stages_in_order(log):
    progress = LoadProgress(log)
    seen = [progress.now.stage]
    for line in LOG:
        add(log, line + "\n")
        if progress.advance():
            seen.append(progress.now.stage)
    assert seen == list(range(len(STAGES)))
    assert progress.now.title == "starting the server"


def test_a_whole_log_at_once_ends_at_the_last_stage(log):
    progress = LoadProgress(log)
    add(log, "\n".join(LOG) + "\n")
    assert progress.advance()
    assert progress.now.stage == len(STAGES) - 1
    assert not progress.advance()


def test_weights_are_counted_by_their_files(log):
    progress = LoadProgress(log)
    add(
        log,
        "\n".join(LOG[:5]) + "\nLoading safetensors checkpoint shards:  40% Completed | 2/5 [00:01<00:02,  1.4it/s]\n",
    )
    assert progress.advance()
    assert (progress.now.title, progress.now.done, progress.now.of) == ("loading weights", 2, 5)
    add(log, "Loading weights took 3 seconds\nLoading safetensors checkpoint shards: 100% Completed | 1/1\n")
    assert progress.advance()
    assert (progress.now.title, progress.now.of) == ("allocating the KV cache", 0)


def test_a_log_that_is_rotated_meanwhile_is_read_on(log):
    add(log, "x" * 1000 + "\n")
    progress = LoadProgress(log)
    log.rename(log.with_suffix(".1"))
    add(log, "Resolved architecture\n")
    assert progress.advance()


def test_a_line_counts_once_it_is_whole(log):
    progress = LoadProgress(log)
    add(log, "Resolved archi")
    assert not progress.advance()
    add(log, "tecture: LlamaForCausalLM\n")
    assert progress.advance()
    assert progress.now.title == "starting the engine core"


def test_a_stage_never_goes_back(log):
    progress = LoadProgress(log)
    add(log, "Loading weights took 1 s\nStarting to load model draft\n")
    progress.advance()
    assert progress.now.title == "allocating the KV cache"


def test_the_log_of_an_earlier_start_does_not_count(log):
    add(log, "\n".join(LOG) + "\n")
    progress = LoadProgress(log)
    assert not progress.advance()
    assert progress.now.stage == 0


def test_a_log_need_not_be_utf_8(log):
    progress = LoadProgress(log)
    log.write_bytes(b"\xff\xfe Resolved architecture\n")
    assert progress.advance()


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("OSError: [Errno 98] Address already in use", "took its port"),
        ("AssertionError: Error in memory profiling. Initial free memory 1.00 GiB", "gave GPU memory back"),
        (
            "ValueError: Free memory on device cuda:0 (9.1/79.2 GiB) on startup is less than desired GPU memory",
            "others have too much",
        ),
        ("ValueError: No available memory for the cache blocks. Try increasing", "KV cache is too small"),
        (
            "(0.04 GiB KV cache is needed, which is larger than the available KV cache memory (0.02 GiB)",
            "KV cache is too small",
        ),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "out of memory: lower"),
        ("OSError: [Errno 12] Cannot allocate memory", "out of memory: lower"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "out of memory: lower"),
        ("RuntimeError: operator torchvision::nms does not exist", "pip uninstall -y torchvision"),
        ("ModuleNotFoundError: No module named 'vllm'", "not installed in its Python"),
        ("/opt/bin/python: Error while finding module: No module named vllm", "not installed in its Python"),
        (
            "entry.py: error: unrecognized arguments: --enable-expert-paralle",
            "vLLM says unrecognized arguments: --enable-expert-paralle",
        ),
        ("entry.py: error: argument --max-num-seqs: invalid int value: 'x'", "vLLM says argument --max-num-seqs"),
        ("OSError: /m is not a local folder and is not a valid model identifier listed on", "could not be fetched"),
        ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", "could not be fetched"),
        ("huggingface_hub.errors.LocalEntryNotFoundError: cannot find the requested files", "could not be fetched"),
    ],
)
def test_known_ways_to_die_have_a_likely_cause(line, part):
    assert part in likely_cause(["before", line, "after"])


@pytest.mark.parametrize("lines", [[], LOG, ["Segmentation fault"]])
def test_anything_else_has_no_likely_cause(lines):
    assert likely_cause(lines) is None


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", True),
        ("AssertionError: Error in memory profiling. Initial free memory 1.00 GiB", True),
        ("ValueError: No available memory for the cache blocks.", True),
        ("Segmentation fault", False),
    ],
)
def test_a_want_of_memory_is_seen(line, wanted):
    assert wanted_memory(["before", line, "after"]) is wanted


def test_the_last_lines_are_the_oldest_first(log):
    add(log, "".join(f"{number}\n" for number in range(50)))
    assert last_lines(log, 3) == ["47", "48", "49"]
    assert len(last_lines(log)) == 30


def test_of_a_huge_log_the_end_is_looked_at(log):
    with log.open("wb") as file:
        file.truncate(2 << 30)  # nothing is there, and takes no room
    add(log, "\nlast\n")
    assert last_lines(log, 1) == ["last"]


def test_a_log_that_is_not_there_has_no_lines(tmp_path):
    assert last_lines(tmp_path / "gone.log") == []
