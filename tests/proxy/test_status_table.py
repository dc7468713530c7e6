"""The table of the README: what a client is told when a request ends without its answer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proxy.settings import Admission, FailurePolicy, Leg, Settings, Timeouts
from tests.fakes.completions import Ending
from tests.fakes.engine import FakeEngine, Fault

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
README = Path(__file__).parents[2] / "README.md"
_QUICK = Leg(first_byte=0.5, idle=0.5)
SETTINGS = Settings(
    failure_policy=FailurePolicy.FAIL,
    timeouts=Timeouts(prefill=_QUICK, decode=_QUICK, whole_answer=0.5),
    probe_interval=60.0,
)


@dataclass
class Case:
    row: str
    """The first cell of the table's row."""
    status: int
    decode: Fault | None = None
    prefill: Fault | None = None
    settings: Settings = SETTINGS
    body: dict | bytes = field(default_factory=lambda: TEXT)
    headers: dict[str, str] = field(default_factory=dict)
    path: str = "/v1/completions"
    retry_after: bool = False


UNREACHABLE = "an engine cannot be reached, or breaks off before the answer is whole"
NO_JSON = "an answer is no HTTP, or no JSON object"
BAD_REQUEST = "the body is no JSON object; the policy asked for is not allowed"
GONE = "an open stream breaks, stalls or is given up"
STREAM = TEXT | {"stream": True}
CASES = [
    Case("an engine refused the request", 422, prefill=Fault(status=422)),
    Case("an engine refused the request", 404, decode=Fault(status=404)),
    Case("an engine failed", 500, decode=Fault(status=500)),
    Case("an engine failed", 503, prefill=Fault(status=503), retry_after=True),
    Case(
        "an engine gave the request up (`finish_reason: abort`, status 200)",
        503,
        decode=Fault(ending=Ending("abort", 1)),
        retry_after=True,
    ),
    Case("an error object in an answer of status 200", 502, decode=Fault(status=200, body=b'{"error":"no"}')),
    Case("an error object in an answer of status 200", 500, decode=Fault(ending=Ending("error")), body=STREAM),
    Case("prefill answered without KV parameters", 502, prefill=Fault(kv=None)),
    Case(UNREACHABLE, 502, decode=Fault(cut_after=0)),
    Case(UNREACHABLE, 502, prefill=Fault(cut_after=0)),
    Case(NO_JSON, 502, decode=Fault(status=200, body=b"[]")),
    Case("a limit of a leg ran out", 504, prefill=Fault(hang=True)),
    Case("a limit of a leg ran out", 504, decode=Fault(hang=True)),
    Case(GONE, 200, decode=Fault(cut_after=2), body=STREAM),
    Case(GONE, 200, decode=Fault(stall_after=2), body=STREAM),
    Case(GONE, 200, decode=Fault(ending=Ending("abort", 2)), body=STREAM),
    Case(BAD_REQUEST, 400, body=b"[1]"),
    Case(BAD_REQUEST, 400, headers={"X-Duet-Failure-Policy": "retry"}),
    Case(
        "the body is larger than `proxy.body_limit`",
        413,
        settings=Settings(failure_policy=FailurePolicy.FAIL, body_limit=10, probe_interval=60.0),
    ),
    Case("path and headers are larger than 64 KiB together", 431, headers={"x-large": "x" * 70_000}),
    Case("the route operates an engine", 403, path="/sleep"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.row[:30]}-{case.status}")
async def test_each_failure_is_told_as_the_table_says(start, case):
    duet = await start(settings=case.settings, policy=FailurePolicy.FAIL, timeouts=case.settings.timeouts)
    duet.prefill.faults.extend([case.prefill] if case.prefill else [])
    duet.decode.faults.extend([case.decode] if case.decode else [])
    content = {"content": case.body} if isinstance(case.body, bytes) else {"json": case.body}
    answer = await duet.client.post(case.path, headers=case.headers, **content)
    assert answer.status_code == case.status
    assert ("retry-after" in answer.headers) == case.retry_after
    if case.status == 200:
        assert b'data: {"error": ' in answer.content
        assert b"[DONE]" not in answer.content
    else:
        assert answer.json()["error"]
    await duet.idle()


async def test_without_a_needed_instance_it_is_503(start):
    engine = FakeEngine("aggregated")
    engine.health = 503
    duet = await start(engines=[engine])
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True)


async def test_too_many_requests_are_429(start):
    duet = await start(settings=Settings(admission=Admission(concurrency=1, queue=0)))
    duet.prefill.faults.append(Fault(hang=True))
    hanging = asyncio.create_task(duet.client.post("/v1/completions", json=TEXT))
    await duet.prefill.saw(1)
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert (answer.status_code, "retry-after" in answer.headers) == (429, True)
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)


def rows(text: str, header: str) -> list[list[str]]:
    """The cells of the table that begins with this header."""
    lines = text[text.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


def test_the_readme_has_a_row_for_each_and_these_cases_cover_the_rest():
    table = rows(README.read_text(), "| what happened | status | `Retry-After` |")
    elsewhere: dict[str, Callable] = {
        "no instance that is needed serves": test_without_a_needed_instance_it_is_503,
        "more requests than `proxy.admission` takes": test_too_many_requests_are_429,
    }
    # By the tests of drain, of disconnects and of keys.
    shown = {"the proxy is shutting down", "the client has left"}
    shown.add("no key, or one that nobody has, with `proxy.client_keys` (or, of operators, `proxy.admin_keys`)")
    assert [row[0] for row in table if row[0] not in {case.row for case in CASES} | set(elsewhere) | shown] == []
    for case in CASES:
        row = next(row for row in table if row[0] == case.row)
        assert str(case.status) in row[1] or "the engine's" in row[1] or "its code" in row[1]
