"""What people read of an experiment."""

from dataclasses import replace

from rich.console import Console

from launcher.ab import text
from proxy.experiment.answer import ArmSeen, ExperimentAnswer, MetricSeen
from proxy.sequential import Verdict
from proxy.split import Experiment, Split

SPLIT = Split("ab-1", {"main": 90, "int8": 10}, experiment=Experiment("main", "int8", ttft=0.5, tpot=0.1))
ANSWER = ExperimentAnswer(
    SPLIT,
    arms={"main": ArmSeen(9000, 9, 8000, 900), "int8": ArmSeen(1000, 1, 950, 98, {"fell_back": 3})},
    metrics=(
        MetricSeen("goodput", Verdict.BETTER, "why", 0.889, 0.95, (9000, 1000), 0.061, 0.01, 0.112),
        MetricSeen("errors", Verdict.NOT_ENOUGH, "why", 0.001, 0.001, (9000, 1000), 0.0, -0.03, 0.03),
        MetricSeen("ttft", Verdict.BETTER, "why", 0.2, 0.18, (9000, 1000), 0.9, 0.85, 0.95),
        MetricSeen("tpot", Verdict.NOT_ENOUGH, "B has 0", None, None, (0, 0)),
    ),
    verdict=Verdict.BETTER,
    reasons=("goodput: better",),
)


def printed(*tables) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        for table in tables:
            console.print(table)
    return captured.get()


def test_effects_are_in_their_units_and_ttft_stands_next_to_the_time_per_token():
    shown = [" ".join(line.split()) for line in printed(text.metrics(ANSWER)).splitlines()]
    assert shown[1:] == [
        "goodput 88.9% 95.0% +6.1 points +1.0 to +11.2 better",
        "errors 0.1% 0.1% +0.0 points -3.0 to +3.0 not enough data",
        "TTFT 200.0 ms 180.0 ms x 0.90 0.85 to 0.95 better",
        "time per token - - - - not enough data",
    ]


def test_arms_tell_what_was_left_out():
    assert "int8  1,000     950    1       98       3 fell back" in printed(text.arms(ANSWER))


def test_the_headline_says_what_is_compared_and_what_good_means():
    assert text.headline(SPLIT) == (
        "ab-1 compares int8 (B) with main (A): main 90 %, int8 10 % by session; good is what was answered, the first "
        "token within 0.5 s and each further one within 0.1 s"
    )
    shadow = Split("ab-1", {"main": 100}, shadow="int8", shadow_percent=5, experiment=Experiment("main", "int8"))
    assert "copies of 5 % of the sessions go to int8" in text.headline(shadow)
    assert "no objective is given" in text.headline(shadow)
    assert "is no experiment" in text.headline(Split("spec", {"main": 100}))


def test_the_verdict_comes_with_its_reasons():
    assert list(text.lines(ANSWER)) == ["int8 is: better", "- goodput: better"]
    assert list(text.lines(ExperimentAnswer(problem="disk full"))) == ["warning: disk full"]


def test_how_to_promote_is_an_edit_of_the_profile():
    told = list(text.promotion(ANSWER))
    assert "  - {pool: int8}" in told
    assert "warning" not in told[0]
    unsure = replace(ANSWER, verdict=Verdict.NOT_ENOUGH)
    assert next(text.promotion(unsure)) == "warning: it was not shown that int8 is better: not enough data"
