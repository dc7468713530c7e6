"""`launcher size`, as somebody types it."""

import json

import pytest
from typer.testing import CliRunner

from launcher import machine, sized
from launcher.cli import app
from launcher.local.deployment import Deployment, InstanceState, State
from launcher.local.run_directory import RunDirectory
from launcher.sizing import history
from launcher.sizing.measured import Measured
from tests.launcher.builders import GIB, MACHINE, model_folder, plan
from tests.launcher.sizing.models import said

LOG = "=== duet: started\nCPU KV cache size: 11,648 tokens, Maximum concurrency for 2,048 tokens per request: 5.69x\n"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Types `launcher size ...` on a machine on paper; output and exit code."""

    def typed(*arguments, paper=MACHINE):
        monkeypatch.setattr(machine, "look", lambda environ: paper)
        result = CliRunner().invoke(app, ["size", *arguments, "--run-dir", str(tmp_path / "run")])
        return result.output, result.exit_code

    return typed


def test_a_shipped_profile_is_sized_part_by_part(run):
    output, code = run("api-throughput")
    assert code == 0
    assert output.startswith("api-throughput: fits (with a margin of 20%)")
    for line in ("int8 w8a8", "70.55 billion", "KV tokens", "GPU 3", "What other precisions would change"):
        assert line in output
    assert "INT4     fp8" in output
    assert "The KV cache of a prompt of 2,048 tokens: 671 MB; --bandwidth says how long that takes" in output


def test_bandwidth_and_prompt_say_how_long_a_hand_over_takes(run):
    output, _ = run("api-throughput", "--bandwidth", "10GB/s", "--prompt-tokens", "4096")
    assert "a prompt of 4,096 tokens: 1,342 MB, 134 ms on its way" in output


def test_the_same_as_json_in_bytes(run):
    output, code = run("interactive", "--output", "json", "--margin", "0.1")
    told = json.loads(output)
    assert code == 0
    assert told["deployment"]["margin"] == 0.1
    (engine,) = told["deployment"]["instances"]
    assert engine["kv"]["bytes_per_token"] == 131_072 + 4_096
    assert {part["name"] for part in engine["parts"]} >= {"weights", "draft", "activations"}
    assert engine["verdict"] == "fits"


def test_a_machine_without_devices_shows_usual_ones(run):
    output, code = run("api-throughput", paper=MACHINE.__class__(2, 24 * GIB, 24 * GIB, "python", MACHINE.cache))
    assert code == 0
    told = "This machine does not have such devices (roles.*.device_memory says what they have). On others:"
    assert told in output
    assert output.count("does not fit") == 4


def test_alike_engines_are_one_column(run):
    output, _ = run("api-throughput", "--set", "roles.decode.replicas=3", "--set", "roles.decode.tensor_parallel=1",
                    "--set", "roles.prefill.tensor_parallel=1")  # fmt: skip
    assert "decode-0 to decode-2" in output


def test_devices_that_somebody_names(run):
    output, code = run("single-gpu", "--on", "2x24GiB")
    assert code == 0
    assert output.startswith("single-gpu on 2 x 24.00 GiB:")
    assert "as it is: int4 awq" in output


def test_nothing_is_an_answer(run):
    output, code = run("api-throughput", "--on", "1x8GiB")
    assert code == 0
    assert output.count("nothing fits: not even one request, in any precision, on all of them together") == 2
    assert "not prefill and decode at once: prefill and decode fit in no precision" in output


def test_a_folder_needs_no_profile(run, tmp_path):
    folder = model_folder(tmp_path / "m", said("llama-3.2-1b")["config"])
    output, code = run("--model", str(folder), "--on", "1x8GiB", "--output", "json")
    assert code == 0
    (options,) = json.loads(output)["options"].values()
    assert [each["weights"] for each in options] == ["as it is: 16 bit", "INT8", "INT4"]


def test_a_folder_that_describes_no_model_says_so(run, tmp_path):
    output, code = run("--model", str(tmp_path), "--on", "1x8GiB")
    assert code == 0
    assert "does not describe a model whose memory can be counted" in output


@pytest.mark.parametrize(
    "arguments",
    [(), ("--on", "1x8GiB"), ("demo", "--on", "8GiB"), ("demo", "--on", "0x8GiB"),
     ("demo", "--on", "2x24"), ("api-throughput", "--bandwidth", "10"), ("demo", "--margin", "120%"),
     ("demo", "--margin", "x"), ("api-throughput", "--bandwidth", "fast")],
)  # fmt: skip
def test_what_is_not_understood_is_a_usage_error(run, arguments):
    output, code = run(*arguments)
    assert code == 2
    assert "Traceback" not in output


def test_a_run_directory_without_starts_says_so(run):
    assert run("--running")[1] != 0


class Silent:
    """A reporter that keeps what it hears."""

    def __init__(self):
        self.heard = []

    def __getattr__(self, name):
        return lambda *arguments: self.heard.append((name, *arguments))


def ready(started_at, state=State.READY):
    decode = InstanceState("decode-0", "decode", "http://127.0.0.1:1", state, started_at=started_at)
    proxy = InstanceState("proxy", "proxy", "http://127.0.0.1:2", State.READY, started_at=started_at)
    return Deployment("demo", 1, 0.0, "mark", "http://x", "m", True, 10.0, (decode, proxy))


@pytest.fixture
def reporter(tmp_path):
    """In front of a silent one; what it tells, and its run directory."""
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    directory.log("decode-0").write_text(LOG)
    settled, told, inner = plan("demo"), [], Silent()
    sizes = sized.planned_sizes(settled, MACHINE, directory.path, {})
    return sized.SizedReporter(inner, sizes, directory, told.append), told, inner, directory


def test_each_start_is_told_beside_the_plan_once(reporter):
    following, told, inner, directory = reporter
    for deployment in (ready(None, State.STARTING), ready(1.0), ready(1.0), ready(2.0)):
        following.changed(deployment)
    assert told == ["decode-0: KV tokens 11,648 tokens as planned"] * 2
    assert [event[0] for event in inner.heard] == ["changed"] * 4
    starts = [*history.read(directory.path)]
    assert [(start.instance, start.planned.tokens, start.real.tokens) for start in starts] == [
        ("decode-0", 11_648, 11_648)
    ] * 2


def test_what_came_is_shown_later(reporter, run):
    following, *_ = reporter
    following.changed(ready(1.0))
    output, code = run("--running")
    assert code == 0
    assert ["decode-0", "KV", "tokens", "11,648", "11,648", "+0.0%"] in [line.split() for line in output.splitlines()]
    told = json.loads(run("--running", "--output", "json")[0])
    assert told[0]["real"] == vars_of(Measured(tokens=11_648, length=2048, concurrency=5.69))


def vars_of(measured):
    return {name: getattr(measured, name) for name in measured.__dataclass_fields__}


def test_a_run_directory_that_cannot_be_written_warns_and_goes_on(reporter):
    following, told, inner, directory = reporter
    (directory.path / (history.FILE + ".new")).mkdir()
    following.changed(ready(1.0))
    assert told
    assert inner.heard[-1][0] == "warn"


def test_everything_else_is_passed_on(reporter):
    following, _, inner, _ = reporter
    following.warn("x")
    following.stopping()
    assert inner.heard == [("warn", "x"), ("stopping",)]
