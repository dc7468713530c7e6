"""`launcher bench`, from the command line to its report."""

import json
import re
from pathlib import Path

import pytest
import typer.testing

from launcher.commands.bench import app
from launcher.errors import MeasureError
from launcher.measure.redacted import redacted
from tests.fakes.engine import FakeEngine, Fault
from tests.launcher.measure.background import Background
from tests.launcher.quantize.test_report import Seen

QUICK = ["--seconds", "0.5", "--warm-up", "0.1"]


@pytest.fixture
def engine():
    with Background(FakeEngine(pace=0.0005)) as running:
        yield running


def bench(*arguments: object) -> str:
    done = typer.testing.CliRunner().invoke(app, [*map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_a_url_is_measured_and_reported(engine: FakeEngine, tmp_path: Path):
    told = bench(engine.url, *QUICK, "--concurrency", 3, "--out", tmp_path / "out", "--ttft", 5, "--key", "sk-secret")
    assert re.search(r"TTFT .*\nTPOT|TTFT(.|\n)*TPOT", told)
    assert "100.0 %" in told
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["settings"]["load"] == {"concurrency": 3}
    assert report["figures"]["failed"] == 0
    assert report["figures"]["objectives"] == {"ttft": 5.0, "tpot": None}
    assert report["figures"]["output_rate"]["value"] > 0
    assert report["counted"]["generated"] > 0
    assert report["warmed_up"] > 0
    assert {"duet-serve", "python", "numpy", "vllm"} <= report["conditions"]["versions"].keys()
    assert report["conditions"]["cores"] > 0
    samples = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    assert len(samples) == report["figures"]["requests"] + report["warmed_up"]
    assert all("secret" not in file.read_text() for file in (tmp_path / "out").iterdir())


def test_the_page_needs_nothing_else(engine: FakeEngine, tmp_path: Path):
    bench(engine.url, *QUICK, "--out", tmp_path, "--tpot", 0.01)
    page = Seen((tmp_path / "report.html").read_text())
    assert not page.tags & {"script", "link", "img", "iframe"}
    assert all(link.startswith("#") for link in page.links)
    assert len(page.ids) == len(set(page.ids))
    for word in ("TTFT", "TPOT", "goodput", "p99", "seed", "digest of the requests"):
        assert word in page.words


def test_a_report_is_measured_again_from_its_own_file(engine: FakeEngine, tmp_path: Path):
    records = tmp_path / "real.jsonl"
    records.write_text("".join(json.dumps({"prompt": f"number {i}", "at": i / 100}) + "\n" for i in range(6)))
    bench(engine.url, "--workload", records, "--arrivals", "trace", "--warm-up", 0, "--out", tmp_path / "first")
    first = [json.loads(each.body) for each in engine.seen]
    records.unlink()
    bench("--again", tmp_path / "first" / "report.json", "--out", tmp_path / "second")
    second = [json.loads(each.body) for each in engine.seen[len(first) :]]
    assert sorted(map(json.dumps, second)) == sorted(map(json.dumps, first))
    one, other = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("first", "second"))
    assert one["sent"] == other["sent"]
    assert one["settings"] == other["settings"]


def test_real_requests_are_sent_and_reported_without_their_words(engine: FakeEngine, tmp_path: Path):
    records = tmp_path / "real.jsonl"
    records.write_text('{"prompt": "confidential confidential"}\n{"prompt": "confidential report"}\n')
    options = ["--workload", records, "--anonymise", "--requests", 2, "--warm-up", 0, "--out", tmp_path / "out"]
    bench(engine.url, *options)
    prompts = [json.loads(each.body)["prompt"] for each in engine.seen]
    assert "confidential" not in "".join(prompts)
    assert len({word for prompt in prompts for word in prompt.split()}) == 2
    assert all("confidential" not in file.read_text() for file in (tmp_path / "out").iterdir())


def test_more_requests_than_there_are_are_refused(tmp_path: Path):
    (tmp_path / "real.jsonl").write_text('{"prompt": "a"}\n')
    options = ["--workload", str(tmp_path / "real.jsonl"), "--requests", "2"]
    done = typer.testing.CliRunner().invoke(app, ["http://127.0.0.1:1", *options])
    assert done.exit_code == 2
    assert "the workload has 1" in done.output


def test_a_profile_is_started_and_judged_by_its_own_objectives(profile: Path, tmp_path: Path):
    settings = ["--set", "objectives.ttft=7", "--set", "objectives.tpot=3"]
    told = bench(profile, *settings, *QUICK, "--output", "json", "--tpot", 2, "--out", tmp_path / "out")
    report = json.loads(told[told.index("\n{") :])
    assert report["figures"]["objectives"] == {"ttft": 7, "tpot": 2}
    assert report["overrides"] == ["objectives.ttft=7", "objectives.tpot=3"]
    assert report["figures"]["paths"] == {"pd": 1}
    assert (tmp_path / "out" / "run" / "plan.json").is_file()


def test_made_up_requests_are_the_same_again(engine: FakeEngine, tmp_path: Path):
    bench(engine.url, "--workload", "mixed", "--requests", 12, "--warm-up", 0, "--seed", 4, "--out", tmp_path / "1")
    first = [each.body for each in engine.seen]
    bench("--again", tmp_path / "1" / "report.json", "--out", tmp_path / "2")
    assert sorted(each.body for each in engine.seen[12:]) == sorted(first)


def test_the_warm_up_of_a_run_by_number_sends_other_requests(engine: FakeEngine, tmp_path: Path):
    bench(engine.url, "--requests", 5, "--warm-up", 0.1, "--rate", 500, "--out", tmp_path)
    bodies = [each.body for each in engine.seen]
    assert len(set(bodies)) == len(bodies)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["figures"]["requests"] in (4, 5)
    assert report["warmed_up"] == len(bodies) - 5


def test_failures_are_told_first(engine: FakeEngine, tmp_path: Path):
    engine.faults += [Fault(), *[Fault(status=503)] * 2]
    told = bench(engine.url, "--requests", 20, "--warm-up", 0, "--concurrency", 1, "--out", tmp_path)
    assert re.search(r"note: 2 of \d+ requests failed", told)


def test_where_no_request_is_answered_there_is_no_report(engine: FakeEngine, tmp_path: Path):
    engine.faults += [Fault(status=500)] * 10
    with pytest.raises(MeasureError, match=r"not one of \d+ requests was answered: HTTP 500"):
        bench(engine.url, "--requests", 5, "--warm-up", 0, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--concurrency", 2, "--rate", 1], "--rate does nothing here"),
        (["--most", 5], "needs --rate"),
        (["--speed", 2], "--arrivals trace"),
        (["--arrivals", "trace", "--rate", 2], "--speed instead"),
        (["--anonymise"], "made up"),
        (["--set", "proxy.port=1"], "a URL is measured as it is"),
        (["--arrivals", "poisson"], "--rate"),
        (["--arrivals", "trace"], "needs records"),
        (["--seconds", 1, "--requests", 1], "not both"),
        (["--seconds", 0], "above 0"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: list, said: str):
    done = typer.testing.CliRunner().invoke(app, ["http://127.0.0.1:1", *map(str, options)])
    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())


def test_a_repetition_takes_its_load_from_the_report(engine: FakeEngine, tmp_path: Path):
    bench(engine.url, "--requests", 2, "--warm-up", 0, "--out", tmp_path)
    done = typer.testing.CliRunner().invoke(app, ["--again", str(tmp_path / "report.json"), "--rate", "3"])
    assert done.exit_code == 2
    assert "takes it from the report" in " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}'])
def test_a_file_that_is_no_report_is_refused(tmp_path: Path, text: str):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(MeasureError, match=r"is no report\.json"):
        bench("--again", tmp_path / "report.json")


def test_keys_and_hidden_settings_do_not_come_into_reports():
    command = ["launcher", "bench", "x", "--key", "one", "--key=two", "--set", "env.TOKEN=three"]
    command += ["--set=roles.decode.env.A=four", "--set", "proxy.port=5"]
    assert redacted(command) == (
        "launcher bench x --key '***' '--key=***' --set 'env.TOKEN=***' '--set=roles.decode.env.A=***' "
        "--set proxy.port=5"
    )


def test_anonymise_is_a_verb_of_its_own(tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"prompt": "confidential"}\n')
    told = bench("anonymise", tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert "1 requests without their words" in told
    assert "confidential" not in (tmp_path / "out.jsonl").read_text()


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_report_that_can_come_nowhere_is_told_before_anything_is_sent(engine: FakeEngine, tmp_path: Path, below: str):
    (tmp_path / "file").write_text("")
    with pytest.raises(MeasureError, match="is no folder; choose another with --out"):
        bench(engine.url, *QUICK, "--out", tmp_path / "file" / below)
    assert engine.seen == []


@pytest.mark.parametrize(("option", "value"), [("--rate", "nan"), ("--rate", "inf"), ("--seconds", "nan")])
def test_a_load_without_an_end_is_refused(engine: FakeEngine, option: str, value: str):
    done = typer.testing.CliRunner().invoke(app, [engine.url, option, value])
    assert done.exit_code == 2
    assert engine.seen == []
