"""What the policies are good for, in numbers: four simulated prefill instances under the same requests.

``python -m tests.proxy.test_simulated_loads`` prints the table.
"""

from collections.abc import Callable
from random import Random

import pytest

from proxy.selection import Policy, least_in_flight, power_of_two, prefix_affinity, round_robin, ttft
from tests.proxy.simulation import Request, conversations, mixed, simulate

POLICIES: dict[str, Callable[[Callable[[], float]], Policy]] = {
    "round_robin": lambda clock: round_robin,
    "least_in_flight": lambda clock: least_in_flight,
    "power_of_two": lambda clock: power_of_two(Random(1)),
    "prefix_affinity": lambda clock: prefix_affinity,
    "ttft": lambda clock: ttft(0.2, clock),
}
LOADS: dict[str, Callable[[Random], list[Request]]] = {
    "chats": lambda random: conversations(random, count=400, starts_per_second=2),
    "chats, one short system prompt": lambda random: conversations(
        random, count=400, starts_per_second=2, system_prompts=1, system_tokens=200
    ),
    "long and short prompts": lambda random: mixed(random, count=1500, per_second=10),
}
SHORT = 2000
"""Tokens."""
SEEDS = pytest.mark.parametrize("seed", [1, 2])


@SEEDS
@pytest.mark.parametrize("load", ["chats", "chats, one short system prompt"])
def test_prefix_affinity_finds_more_cached_than_turns_do(load, seed):
    requests = LOADS[load](Random(seed))
    turns, affinity = (simulate(requests, POLICIES[name]) for name in ("round_robin", "prefix_affinity"))
    assert affinity.cached > turns.cached + 0.15
    assert affinity.percentile(0.95) < turns.percentile(0.95) / 4


@SEEDS
def test_ttft_answers_sooner_than_least_in_flight_when_long_and_short_prompts_meet(seed):
    requests = LOADS["long and short prompts"](Random(seed))
    least, steered = (simulate(requests, POLICIES[name]) for name in ("least_in_flight", "ttft"))
    assert steered.percentile(0.95) < least.percentile(0.95) * 0.95
    assert steered.percentile(0.95, SHORT) < least.percentile(0.95, SHORT) * 0.85


@SEEDS
def test_ttft_notices_that_an_instance_is_slow(seed):
    requests = LOADS["long and short prompts"](Random(seed))
    rates = (8000.0, 8000.0, 8000.0, 2000.0)
    least, steered = (simulate(requests, POLICIES[name], rates=rates) for name in ("least_in_flight", "ttft"))
    assert steered.percentile(0.99) < least.percentile(0.99) * 0.6


if __name__ == "__main__":
    for title, load in LOADS.items():
        print(f"\n{title:30}  cached  TTFT p50      p95      p99  p95 of short prompts")  # noqa: T201
        for name, policy in POLICIES.items():
            result = simulate(load(Random(1)), policy)
            seconds = "".join(f"{result.percentile(share):8.3f}s" for share in (0.5, 0.95, 0.99))
            print(f"  {name:28}  {result.cached:6.1%}{seconds}{result.percentile(0.95, SHORT):8.3f}s")  # noqa: T201
