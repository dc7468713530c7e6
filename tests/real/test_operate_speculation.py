"""The controller on real engines: off when the workload changes, on again when it changes back, no request fails."""

from pathlib import Path

import httpx
import pytest

from tests.real.controlled import ENGINES, Clients, controlled, profile

_CHAT = {"model": "model", "max_tokens": 200, "ignore_eos": True}
_TALK = [{"role": "user", "content": "one two three four five six seven eight nine ten"}]
# Always the same token: every draft is right.
CIRCLES = [_CHAT | {"messages": _TALK, "temperature": 0, "allowed_token_ids": [300]}]
# Of a few tokens by chance: each has been there before, and what followed it then says nothing.
CHANCE = [_CHAT | {"messages": _TALK, "temperature": 2.0, "allowed_token_ids": [*range(300, 340)]}]


@pytest.mark.timeout(600)
def test_speculation_is_off_while_it_does_not_pay_and_no_request_fails(model_folder: Path, tmp_path: Path):
    clients = Clients(CHANCE)
    path = profile({"path": str(model_folder), "dtype": "float32"}, tmp_path)
    times = ["--window", "4", "--confirm", "2", "--rest", "0", "--retry", "10", "--least-requests", "3"]
    with controlled(path, tmp_path, *times) as it, clients.at_work(2):
        told = httpx.post(
            f"http://127.0.0.1:{ENGINES}/v1/chat/completions", json=CIRCLES[0], trust_env=False, timeout=120
        ).json()
        it.wait_for({0}, 180)
        clients.bodies = CIRCLES
        it.wait_for({4}, 240)
        decisions = it.decisions()

    assert told["metrics"]["speculative_decoding"]["num_draft_tokens"] > 0
    assert set(clients.statuses) == {200}
    assert set(clients.ends) == {"length"}
    actions = [each["action"] for each in decisions if each["action"] != "keep"]
    assert actions[0] == "off" or actions[:2] == ["lower", "off"]
    assert actions[-2:] == ["try", "on"]
    on = decisions[-1] if decisions[-1]["action"] == "on" else next(e for e in decisions[::-1] if e["action"] == "on")
    assert on["found"]["traffic"]["accepted"] > 0.5 * on["found"]["traffic"]["drafted"]
