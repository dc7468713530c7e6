"""A deployment of two pools: started, proven, used, shown, restarted."""

import json

import httpx

from tests.launcher.local.conftest import Launch

POOLS = (
    *("--set", "pools.other={roles: {decode: {kv_cache_memory: 2MiB}}}"),
    *("--set", "proxy.pools.rules=[{pool: other, when: {tags: [batch]}}]"),
)


def test_both_pools_serve_what_their_rules_say_and_stay_proven_over_a_restart(launch: Launch, command, proxy_port: int):
    launch(*POOLS).wait_ready()

    def pool(**headers: str) -> tuple[str, str]:
        url, body = f"http://127.0.0.1:{proxy_port}/v1/completions", {"model": "fake", "prompt": "one two"}
        told = httpx.post(url, json=body, headers=headers, trust_env=False).headers
        return told["x-duet-pool"], told["x-duet-decode"]

    assert pool() == ("main", "decode-0")
    assert pool(**{"X-Duet-Tags": "batch"}) == ("other", "decode-other-0")
    names = [each["name"] for each in json.loads(command("status", "--output", "json").stdout)["instances"]]
    assert names == ["prefill-0", "decode-0", "prefill-other-0", "decode-other-0", "proxy"]
    pairs = json.loads(command("prove", "--output", "json").stdout)["pairs"]
    assert [(pair["prefill"], pair["decode"], pair["proof"]["verdict"]) for pair in pairs] == [
        ("prefill-0", "decode-0", "proven"),
        ("prefill-other-0", "decode-other-0", "proven"),
    ]
    assert command("restart", "decode-other-0").returncode == 0
    assert pool(**{"X-Duet-Tags": "batch"}) == ("other", "decode-other-0")
