"""`launcher advise` without a deployment: by options, by questions on a terminal, and by neither."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner, Result

from launcher.cli import app
from tests.launcher.local.deployments import REPOSITORY

ONE_USER = (
    "--latency", "tokens", "--no-memory", "--no-throughput", "--answer", "concurrency=2", "--answer", "quantized=int8",
    "--answer", "speculation=none", "--answer", "predictable=yes", "--answer", "temperature=0",
    "--answer", "min_p_or_logit_bias=no", "--answer", "output_tokens_p95=300", "--answer", "draft_fits=yes",
)  # fmt: skip


def advise(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, ["advise", *arguments], input=typed, env={"COLUMNS": "120"})


def test_options_alone_give_advice_as_text():
    shown = advise(*ONE_USER)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "The bottleneck is the speed of tokens: you said so." in shown.stdout
    assert "Next: speculation by a draft model or EAGLE (the order is quantization" in shown.stdout
    assert "  launcher check interactive\n  launcher up interactive\n" in shown.stdout
    assert "[pd/low-concurrency; rule of thumb: PD pays off above about 50" in " ".join(shown.stdout.split())


def test_the_document_has_keys_that_stay():
    document = json.loads(advise(*ONE_USER, "--output", "json").stdout)
    assert list(document) == [
        "verdict", "window_seconds", "bottlenecks", "techniques", "next", "withdraw", "stages_not_judged", "start_from",
        "not_known", "facts", "notes",
    ]  # fmt: skip
    assert document["verdict"] == "yes"
    assert document["next"] == {
        "stage": "speculation",
        "technique": "draft",
        "verdict": "yes",
        "in_a_profile": "`speculation: {method: eagle3, draft: ORG/NAME, num_speculative_tokens: 3}`",
    }
    assert document["start_from"]["commands"] == [
        "launcher check interactive",
        "launcher up interactive",
        "launcher advise --window 600",
    ]
    assert document["facts"]["concurrency"] == {"value": 2.0, "unit": "requests", "origin": "answered"}
    assert document["facts"]["batch"]["origin"] == "derived"
    [pd] = [each for each in document["techniques"] if each["name"] == "pd"]
    assert list(pd) == [
        "name", "title", "stage", "verdict", "in_use", "reasons", "would_have_to_change", "not_decided",
        "expected", "costs",
    ]  # fmt: skip
    assert pd["reasons"][0]["rule"] == "pd/low-concurrency"
    assert pd["reasons"][0]["facts"] == {"concurrency": {"value": 2.0, "unit": "requests", "origin": "answered"}}
    assert pd["would_have_to_change"][0].startswith("more requests at the same time")
    assert all(gain["source"] and gain["measure"] for each in document["techniques"] for gain in each["expected"])


def test_where_nobody_can_answer_nothing_is_asked_and_what_is_unknown_is_said():
    shown = advise(typed="yes\n")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "No technique can be recommended on what is known." in shown.stdout
    assert "Not known: " in shown.stdout
    assert "or measured with `--window 60`; objectives.tpot says which speed of tokens is enough)." in shown.stdout
    assert "PD cannot be judged yet." in shown.stdout
    assert json.loads(advise("--output", "json").stdout)["verdict"] == "cannot-say"


def test_in_a_pipe_the_table_has_the_width_of_a_page():
    shown = CliRunner().invoke(app, ["advise", *ONE_USER], env={"COLUMNS": "80"}).stdout
    (heading,) = (line for line in shown.splitlines() if line.startswith("TECHNIQUE"))
    assert len(heading) > 100


def test_a_no_is_no_failure():
    shown = advise("--no-memory", "--latency", "none", "--no-throughput")
    assert shown.exit_code == 0
    assert "There is no bottleneck." in shown.stdout
    assert "No: none of these techniques will help." in shown.stdout


def test_questions_are_asked_on_demand_and_end_with_the_input():
    shown = advise("--ask", "--output", "json", typed="no\n\nyes\n?\nmany\n40\n")
    assert json.loads(shown.stdout)["facts"]["concurrency"] == {"value": 40.0, "unit": "requests", "origin": "answered"}
    asked = shown.stderr
    assert asked.startswith("Is memory the bottleneck (the model or its KV cache does not fit)? [yes or no; ")
    assert "concurrency: 'many' is not possible, give a number (0 or more requests)\n" in asked
    assert asked.count("How many requests are in the system") == 2


@contextmanager
def terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`launcher advise` with a terminal for its input, and the other end of that."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "launcher", "advise", *arguments],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.communicate()
        os.close(ours)


def test_on_a_terminal_it_asks():
    with terminal() as (process, keyboard):
        os.write(keyboard, b"no\nno\nno\nno\n")
        output, asked = process.communicate(timeout=30)
    assert process.returncode == 0
    assert asked.count("?") >= 4
    assert "Is throughput the bottleneck" in asked
    assert "There is no bottleneck." in output


def test_on_a_terminal_it_asks_nothing_when_told_so():
    with terminal("--no-ask") as (process, _):
        output, asked = process.communicate(timeout=30)
    assert (process.returncode, asked) == (0, "")
    assert "No bottleneck is known." in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--answer", "concurrency=lots"), "concurrency: 'lots' is not possible, give a number (0 or more requests)"),
        (("--answer", "concurency=4"), "did you mean concurrency?"),
        (("--answer", "concurrency=4", "--answer", "concurrency=5"), "concurrency is answered twice, differently"),
        (("--memory", "--answer", "memory_short=no"), "memory_short is answered twice, differently"),
        (("--latency", "slow"), "'slow' is not one of 'none', 'ttft', 'tokens', 'both'"),
        (("--window", "0"), "--window"),
        (("--window", "nan"), "--window"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2_and_says_what_is_allowed(arguments, message):
    refused = advise(*arguments)
    assert refused.exit_code == 2
    assert message in " ".join(refused.stderr.replace("│", " ").split())
