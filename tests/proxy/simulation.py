"""A discrete-event simulation of prefill instances, to compare policies by numbers. No clock, no network.

An instance computes one prompt after the other, at so many tokens per second and with so many seconds for each, and
keeps the KV cache of the blocks it used last. That is a vLLM prefill engine without batching of short prompts.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from proxy.breaker import Breaker
from proxy.hint import BLOCK_TOKENS, Hint
from proxy.pool import Member
from proxy.prefixes import Prefixes
from proxy.selection import Policy
from proxy.settings import Breaker as Limits
from proxy.topology import Instance, Role

MEMORY = 1_000_000 // BLOCK_TOKENS
"""What the proxy remembers of each instance, as by default."""


@dataclass(frozen=True)
class Request:
    """One prompt that arrives at ``at`` seconds."""

    at: float
    hint: Hint


@dataclass(frozen=True)
class Result:
    """What a policy made of a workload."""

    cached: float
    """Share of all prompt tokens that did not have to be computed."""
    answers: list[tuple[Request, float]]
    """The requests and their TTFT in seconds."""

    def percentile(self, share: float, longest: int = 10**9) -> float:
        """A TTFT that this share of the requests, of those with prompts up to so many tokens, did not exceed."""
        ttfts = sorted(ttft for request, ttft in self.answers if request.hint.tokens <= longest)
        return ttfts[min(int(share * len(ttfts)), len(ttfts) - 1)]


@dataclass
class Server:
    """One simulated instance."""

    member: Member
    rate: float
    kv: int
    """Blocks that its KV cache holds."""
    cache: Prefixes = field(default_factory=Prefixes)
    queue: deque[tuple[Request, int]] = field(default_factory=deque)
    computed: int = 0


def simulate(
    requests: list[Request],
    policy: Callable[[Callable[[], float]], Policy],
    *,
    rates: tuple[float, ...] = (8000.0,) * 4,
    kv: int = 400_000 // BLOCK_TOKENS,
    per_leg: float = 0.01,
) -> Result:
    """Send a workload through instances of some rates, as the policy (made with the simulation's clock) says."""
    now = 0.0
    choose = policy(lambda: now)
    servers = {
        f"prefill-{i}": Server(Member(Instance(f"prefill-{i}", Role.PREFILL, ""), Breaker(Limits())), rate, kv)
        for i, rate in enumerate(rates)
    }
    members = [server.member for server in servers.values()]
    events: list[tuple[float, int, str]] = [(request.at, i, "") for i, request in enumerate(requests)]
    heapq.heapify(events)
    count = len(requests)
    answers: list[tuple[Request, float]] = []

    def start(name: str) -> None:
        nonlocal count
        server = servers[name]
        hint = server.queue[0][0].hint
        uncached = hint.tokens - server.cache.match(hint.blocks) * BLOCK_TOKENS
        server.cache.add(hint.blocks, server.kv)
        server.computed += uncached
        heapq.heappush(events, (now + per_leg + uncached / server.rate, count, name))
        count += 1

    while events:
        now, number, finished = heapq.heappop(events)
        if finished:
            server = servers[finished]
            request, work = server.queue.popleft()
            server.member.in_flight -= 1
            server.member.load.end(work, request.at, now, done=True)
            answers.append((request, now - request.at))
        else:
            request = requests[number]
            member = choose(members, request.hint)
            server = servers[member.instance.name]
            member.in_flight += 1
            member.last_turn = number + 1
            work = member.load.begin(member.load.uncached(request.hint))
            member.load.prefixes.add(request.hint.blocks, MEMORY)
            server.queue.append((request, work))
        if server.queue and (finished or len(server.queue) == 1):
            start(server.member.instance.name)
    tokens = sum(request.hint.tokens for request in requests)
    return Result(1 - sum(server.computed for server in servers.values()) / tokens, answers)


def prompt(*parts: tuple[str, int]) -> Hint:
    """A prompt of named parts and their tokens; equal parts at equal places have equal blocks."""
    tokens = sum(length for _, length in parts)
    seed, chain, done = 0, [], 0
    for name, length in parts:
        done += length
        while (len(chain) + 1) * BLOCK_TOKENS <= done:
            seed = hash((seed, name))
            chain.append(seed)
    return Hint(tokens, tuple(chain))


def conversations(
    random: Random, *, count: int, starts_per_second: float, system_prompts: int = 4, system_tokens: int = 1500
) -> list[Request]:
    """Chats of 3 to 10 turns, 15 seconds apart, that share a few system prompts. Every turn sends all before it."""
    requests, begins = [], 0.0
    for number in range(count):
        begins += random.expovariate(starts_per_second)
        at = begins
        parts = [(f"system {random.randrange(system_prompts)}", system_tokens)]
        for turn in range(random.randint(3, 10)):
            parts.append((f"{number} question {turn}", random.randint(50, 600)))
            requests.append(Request(at, prompt(*parts)))
            parts.append((f"{number} answer {turn}", random.randint(100, 500)))
            at += random.expovariate(1 / 15)
    return requests


def mixed(random: Random, *, count: int, per_second: float, long_share: float = 0.1) -> list[Request]:
    """Prompts that share nothing: most have 100 to 500 tokens, some have 8,000 to 24,000."""
    requests, at = [], 0.0
    for number in range(count):
        at += random.expovariate(per_second)
        size = random.randint(8000, 24_000) if random.random() < long_share else random.randint(100, 500)
        requests.append(Request(at, prompt((str(number), size))))
    return requests
