"""The way of each request, as its answer's headers and its line in the log tell it."""

import logging
import re

import pytest

from proxy.settings import FailurePolicy
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.test_disconnects import leave_while_waiting

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
PD = {"path": "pd", "prefill": "prefill-0", "decode": "decode-0"}
ALONE = {"path": "aggregated", "decode": "decode-0"}
FAILED = Fault(status=500)

CASES = {
    # the request, faults of prefill and of decode, the policy, what is told, and what only the log tells
    "through a pair": ({}, [], [], "aggregate", PD, {"status": "200"}),
    "streamed": ({"stream": True}, [], [], "aggregate", PD, {"status": "200"}),
    "a bypass": ({"n": 2}, [], [], "aggregate", {**ALONE, "bypass": "several_choices"}, {"status": "200"}),
    "prefill failed": ({}, [FAILED], [], "aggregate", {**ALONE, "bypass": "prefill_failed"}, {"status": "200"}),
    "no KV": ({}, [Fault(kv=None)], [], "aggregate", {**ALONE, "bypass": "prefill_without_kv"}, {"status": "200"}),
    "decode failed": ({}, [], [FAILED], "aggregate", {**ALONE, "bypass": "decode_failed"}, {"status": "200"}),
    "prefill refused": ({}, [Fault(status=422)], [], "aggregate", {"prefill": "prefill-0"}, {"status": "422"}),
    "decode refused": (
        {},
        [],
        [Fault(status=422)],
        "aggregate",
        {"prefill": "prefill-0", "decode": "decode-0"},
        {"status": "422", "failure": "EngineRejection"},
    ),
    "nothing instead of prefill": (
        {},
        [FAILED],
        [],
        "fail",
        {"prefill": "prefill-0"},
        {"status": "500", "failure": "error"},
    ),
    "nothing instead of decode": (
        {},
        [],
        [FAILED],
        "fail",
        {"prefill": "prefill-0", "decode": "decode-0"},
        {"status": "500", "failure": "error"},
    ),
    "the last resort failed, too": (
        {},
        [FAILED],
        [FAILED],
        "aggregate",
        {"decode": "decode-0", "bypass": "prefill_failed"},
        {"status": "500", "failure": "error"},
    ),
    "broken off": ({"stream": True}, [], [Fault(cut_after=2)], "aggregate", PD, {"status": "200", "failure": "cut"}),
    "no JSON": ("{", [], [], "aggregate", {}, {"status": "400", "failure": "BadRequest"}),
}


def logged(caplog) -> dict[str, str]:
    """The fields of the only line of a request."""
    (line,) = [r.getMessage() for r in caplog.records if r.name == "proxy.api.finish"]
    return {name: value for name, value in re.findall(r"(\S+?)=(\S+)", line) if value != "-"}


@pytest.mark.parametrize("case", CASES)
async def test_headers_and_log_say_the_same_of_a_request(start, caplog, case):
    caplog.set_level(logging.INFO)
    body, of_prefill, of_decode, policy, told, only_logged = CASES[case]
    duet = await start(policy=FailurePolicy(policy))
    duet.prefill.faults.extend(of_prefill)
    duet.decode.faults.extend(of_decode)
    sent = {"content": body} if isinstance(body, str) else {"json": {**TEXT, **body}}
    answer = await duet.client.post("/v1/completions", **sent)
    ours = {name.removeprefix("x-duet-"): value for name, value in answer.headers.items() if name.startswith("x-duet-")}
    assert ours == told
    fields = logged(caplog)
    assert {name: fields[name] for name in fields if name in ("path", "prefill", "decode", "bypass")} == told
    assert only_logged.items() <= fields.items()
    assert fields["request_id"] == answer.headers["x-request-id"]


async def test_without_instances_the_answer_still_has_an_id(start, caplog):
    caplog.set_level(logging.INFO)
    engine = FakeEngine()
    engine.health = 500
    duet = await start(engines=[engine])
    answer = await duet.client.post("/v1/completions", json=TEXT)
    assert answer.status_code == 503
    assert logged(caplog)["failure"] == "NoInstance"
    assert logged(caplog)["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("leaves", "told"),
    [("prefill", {"prefill": "prefill-0"}), ("decode", {"prefill": "prefill-0", "decode": "decode-0"})],
)
async def test_the_log_says_how_far_a_request_came_whose_client_left(duet, caplog, leaves, told):
    caplog.set_level(logging.INFO)
    engine = getattr(duet, leaves)
    engine.faults.append(Fault(hang=True))
    await leave_while_waiting(duet, TEXT, engine)
    await duet.idle()
    fields = logged(caplog)
    assert {name: fields[name] for name in fields if name in ("path", "prefill", "decode", "bypass")} == told
    assert (fields["status"], fields["failure"]) == ("499", "ClientGone")
