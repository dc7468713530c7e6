"""Requests and samples for tests."""

from collections.abc import Iterable

from launcher.measure.request import Request
from launcher.measure.sample import Sample
from launcher.measure.target import Target
from tests.fakes.engine import FakeEngine


def prompts(count: int, tokens: int = 3, times: Iterable[float] = ()) -> list[Request]:
    """So many different completions; the first ones at these times."""
    at: list[float | None] = [*times]
    at += [None] * (count - len(at))
    body = {"max_tokens": tokens, "temperature": 0}
    return [Request("completions", {"prompt": f"prompt {i}", **body}, at=at[i]) for i in range(count)]


def target(engine: FakeEngine) -> Target:
    """The engine alone."""
    return Target("fake", engine.url, engine.model)


def sample(number: int = 0, sent: float = 0.0, **values) -> Sample:
    """A complete answer of ten tokens: the first after 0.1 s, the others every 0.01 s."""
    usual = {
        "due": sent,
        "ttft": 0.1,
        "total": 0.19,
        "prompt_tokens": 20,
        "tokens": 10,
        "events": 10,
        "longest_pause": 0.01,
        "finish": "length",
    }
    return Sample(number=number, sent=sent, **(usual | values))
