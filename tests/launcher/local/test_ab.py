"""An experiment on a running deployment: begun, read, ended by a guard or by hand."""

import json
from pathlib import Path

import httpx

from tests.launcher.local.conftest import Launch

POOLS = (
    *("--set", "pools.other={roles: {decode: {kv_cache_memory: 2MiB}}}"),
    *("--set", "proxy.pools.rules=[{pool: main, when: {tags: [exact]}}]"),
    *("--set", "objectives.ttft=5"),
)


def test_an_experiment_is_begun_read_and_stopped(launch: Launch, command, proxy_port: int, folder: Path):
    launch(*POOLS).wait_ready()
    url = f"http://127.0.0.1:{proxy_port}/v1/completions"

    def ask(session: int, **headers: str) -> httpx.Headers:
        body = {"model": "fake", "prompt": "one two", "stream": True}
        return httpx.post(url, json=body, headers={"x-session-id": f"{session}"} | headers, trust_env=False).headers

    assert "no experiment runs" in command("ab", "status").stdout
    assert "no experiment runs" in command("ab", "stop").stderr
    wrong = command("ab", "start", "--b", "int9")
    assert (wrong.returncode, wrong.stderr) == (4, "error: there is no pool int9; there are: main, other\n")

    begun = command("ab", "start", "--b", "other", "--share", "50")
    assert begun.returncode == 0, begun.stderr
    assert "compares other (B) with main (A): main 50 %, other 50 % by session" in begun.stdout
    assert "the first token within 5 s" in begun.stdout
    told = [ask(session)["x-duet-arm"] for session in range(20)]
    assert set(told) == {"main", "other"}
    assert "x-duet-arm" not in ask(1, **{"x-duet-tags": "exact"})
    twice = command("ab", "start", "--b", "other")
    assert "an experiment runs: ab-" in twice.stderr

    read = command("ab", "status", "--watch")  # where there is no terminal, once
    assert read.returncode == 0
    assert "other is: not enough data" in read.stdout
    shown = json.loads(command("ab", "status", "--output", "json").stdout)
    assert {arm: seen["requests"] for arm, seen in shown["arms"].items()} == {
        "main": told.count("main"),
        "other": told.count("other"),
    }
    assert command("restart", "proxy").returncode == 0
    assert ask(0)["x-duet-arm"] == told[0]

    ended = command("ab", "stop", "--promote")
    assert ended.returncode == 0, ended.stderr
    assert "  - {pool: other}" in ended.stdout
    assert "x-duet-arm" not in ask(1)
    (report,) = (folder / "run/experiment").glob("*/report.json")
    kept = json.loads(report.read_text())
    assert sum(arm["requests"] for arm in kept["shown"]["arms"].values()) == 21
    assert kept["begun"]["command"].startswith("launcher ab start --b other --share 50")
    assert kept["begun"]["versions"]["python"]
    assert kept["begun"]["cores"] > 0
    assert str(report) in ended.stdout


def test_where_nothing_runs_that_is_said_with_what_to_do_in_a_cluster(command):
    missing = command("ab", "start", "--b", "other")
    assert missing.returncode == 4
    assert "nothing runs in" in missing.stderr
    assert "in a cluster, install one release for each arm" in missing.stderr


def test_a_share_of_everything_is_no_experiment(command):
    assert "leaves nothing to compare with" in command("ab", "start", "--b", "x", "--share", "100").stderr
