"""Instances are taken out of traffic and back while the deployment runs."""

import json

from tests.launcher.local.conftest import Launch
from tests.launcher.local.test_start import ask


def test_a_drained_instance_gets_nothing_until_it_is_resumed(launch: Launch, command, proxy_port: int):
    launch().wait_ready()

    drained = command("drain", "prefill-0")
    assert (drained.returncode, drained.stdout.splitlines()[-1]) == (0, "drained")
    headers, _ = ask(proxy_port)
    assert (headers["x-duet-path"], headers["x-duet-bypass"]) == ("aggregated", "no_prefill")

    assert command("resume", "prefill-0").returncode == 0
    assert ask(proxy_port)[0]["x-duet-path"] == "pd"


def test_an_unknown_instance_is_named_with_those_there_are(launch: Launch, command):
    launch().wait_ready()
    refused = command("drain", "decode-7")
    assert refused.returncode == 4
    assert "no instance decode-7; there are: prefill-0, decode-0" in refused.stderr


def test_without_a_deployment_there_is_nothing_to_drain(command):
    refused = command("drain", "decode-0")
    assert refused.returncode == 4
    assert "nothing runs in" in refused.stderr


def test_status_shows_how_hand_overs_between_pairs_went(launch: Launch, command, proxy_port: int):
    launch().wait_ready()
    ask(proxy_port)
    shown = command("status", "--pairs")
    assert shown.returncode == 0
    row = shown.stdout.splitlines()[1].split()
    assert (row[:3], row[4], row[5:7]) == (["prefill-0", "decode-0", "proven"], "ago", ["1", "0"])
    found = json.loads(command("status", "--pairs", "--output", "json").stdout)
    assert found["pairs"][0]["handed_over"] == 1


def test_prove_sends_canaries_and_says_what_they_have_shown(launch: Launch, command):
    launch().wait_ready()
    shown = command("prove")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[0].split() == [
        "PREFILL",
        "DECODE",
        "VERDICT",
        "KV",
        "TOKENS",
        "TOOK",
        "TRANSFER",
        "REASON",
    ]
    assert shown.stdout.splitlines()[1].split()[:4] == ["prefill-0", "decode-0", "proven", "144"]
    assert json.loads(command("prove", "--output", "json").stdout)["pairs"][0]["proof"]["verdict"] == "proven"
