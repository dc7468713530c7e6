"""`launcher prove` and `launcher status --pairs` of a running deployment."""

import json

import httpx

from tests.launcher.local.conftest import Launch

HEADINGS = ["PREFILL", "DECODE", "VERDICT", "KV", "TOKENS", "TOOK", "TRANSFER", "REASON"]


def test_it_sends_canaries_and_says_what_they_have_shown(launch: Launch, command):
    launch().wait_ready()
    shown = command("prove")
    assert (shown.returncode, shown.stderr) == (0, "")
    headings, row = shown.stdout.splitlines()
    assert headings.split() == HEADINGS
    assert row.split()[:4] == ["prefill-0", "decode-0", "proven", "144"]
    assert json.loads(command("prove", "--output", "json").stdout)["pairs"][0]["proof"]["verdict"] == "proven"


def test_a_pair_that_does_not_come_through_is_exit_code_8_with_the_reason(launch: Launch, command, proxy_port: int):
    launch(recomputes="1").wait_ready()
    shown = command("prove")
    assert shown.returncode == 8
    assert "recomputed" in shown.stdout
    assert "decode computed the prompt itself: by its account it took 0 of 144 tokens" in shown.stdout
    matrix = command("status", "--pairs")
    assert matrix.returncode == 1
    assert matrix.stdout.splitlines()[1].split()[:3] == ["prefill-0", "decode-0", "out"]
    answer = httpx.post(
        f"http://127.0.0.1:{proxy_port}/v1/completions", json={"model": "fake", "prompt": "one two"}, trust_env=False
    )
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "no_pair")


def test_where_nothing_is_handed_over_there_is_nothing_to_prove(launch: Launch, command):
    roles = {"prefill": "null", "decode": "null", "aggregated": "{kv_cache_memory: 1MiB}"}
    launch(*(part for role, value in roles.items() for part in ("--set", f"roles.{role}={value}"))).wait_ready()
    refused = command("prove")
    assert refused.returncode == 4
    assert "there is nothing to prove" in refused.stderr


def test_without_a_deployment_nothing_is_proven(command):
    refused = command("prove")
    assert refused.returncode == 4
    assert "nothing runs in" in refused.stderr
