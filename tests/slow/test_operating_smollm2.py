"""SmolLM2-135M on this CPU: the controller follows what clients ask, and no request fails."""

import os
from pathlib import Path

import pytest

from launcher import machine
from launcher.bundled.prepare import prepare
from tests.real.controlled import Clients, controlled, profile

_MODEL = "smollm2-135m-instruct"
_LINE = "The quick brown fox jumps over the lazy dog near the river bank. "
_REPEATS = [
    {
        "model": "model",
        "messages": [{"role": "user", "content": f"Repeat this text exactly: {_LINE * 6}"}],
        "max_tokens": 64,
        "temperature": 0,
        "ignore_eos": True,
    }
]
_FREE = [
    {
        "model": "model",
        "messages": [{"role": "user", "content": f"Invent a story about {about}."}],
        "max_tokens": 64,
        "temperature": 1.3,
        "ignore_eos": True,
    }
    for about in ("a lighthouse", "two brothers", "rain in July", "a lost key", "the last train", "an old map")
]


@pytest.mark.timeout(1200)
def test_speculation_is_off_for_free_text_and_on_again_for_text_that_repeats(tmp_path: Path):
    prepare(_MODEL, machine.look(os.environ).cache, print)
    clients = Clients(_FREE)
    path = profile({"bundled": _MODEL}, tmp_path)
    times = ["--window", "10", "--confirm", "2", "--rest", "0", "--retry", "15", "--least-requests", "3"]
    with controlled(path, tmp_path, *times) as it, clients.at_work(2):
        it.wait_for({0}, 400)
        clients.bodies = _REPEATS
        it.wait_for({4}, 600)
        decisions = it.decisions()

    assert set(clients.statuses) == {200}
    actions = [each["action"] for each in decisions if each["action"] != "keep"]
    assert "off" in actions
    assert actions[-2:] == ["try", "on"]
    on = next(each for each in decisions[::-1] if each["action"] == "on")
    assert on["found"]["gain"]["low"] > 0
