"""A stream that ends before its answer is complete: what came is passed on once, and then it is told."""

from dataclasses import replace

import pytest

from proxy.settings import Leg, Timeouts
from tests.fakes.engine import Fault
from tests.proxy.conftest import Duet
from tests.proxy.test_every_api import ROUTES, TEXT, assert_told_as_error, every_route

QUICK = Timeouts(decode=Leg(idle=0.5))
ENDINGS = {
    "reset": (Fault(cut_after=4, reset=True), 502),
    "closed": (Fault(cut_after=4), 502),
    "ended": (Fault(end_after=4), 502),
    "silent": (Fault(stall_after=4), 504),
    "reset before the last event": (Fault(cut_after=-1, reset=True), 502),
    "closed before the last event": (Fault(cut_after=-1), 502),
    "ended before the last event": (Fault(end_after=-1), 502),
    "silent before the last event": (Fault(stall_after=-1), 504),
}


def split(text: str) -> list[str]:
    """The events, without the ids that differ between two answers."""
    events = [event.split('"') for event in text.split("\n\n") if event]
    return ['"'.join(part for part in event if "cmpl-" not in part and "resp_" not in part) for event in events]


def placed(fault: Fault, count: int) -> Fault:
    """The fault in a stream of so many events, where -1 means before the last."""
    where = ("cut_after", "end_after", "stall_after")
    return replace(fault, **{key: count - 1 for key in where if getattr(fault, key) == -1})


async def broken(duet: Duet, route: str, body: dict, fault: Fault, code: int) -> tuple[list[str], list[str]]:
    """The events of a whole stream, and those before the error in one with a fault."""
    body = body | {"stream": True}
    whole = split((await duet.client.post(route, json=body)).text)
    duet.decode.faults.append(placed(fault, len(whole)))
    answer = await duet.client.post(route, json=body)
    assert answer.status_code == 200
    assert_told_as_error(route, answer.text, code)
    await duet.idle()
    return whole, split(answer.text)[:-1]


@every_route
@pytest.mark.parametrize("ending", ENDINGS)
async def test_what_came_is_passed_on_once_and_then_an_error_is_told(start, route, body, ending):
    fault, code = ENDINGS[ending]
    duet = await start(timeouts=QUICK if fault.stall_after else None)
    whole, came = await broken(duet, route, body, fault, code)
    assert came == whole[: len(whole) - 1 if ending.endswith("last event") else 4]
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0") == 1
    assert await duet.metric("duet_requests_total", status="200") == 2


SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
WISHES = {
    "plain": {"max_tokens": 20},
    "json schema": {"max_tokens": 20, "response_format": SCHEMA},
    "several choices": {"max_tokens": 20, "n": 2, "temperature": 1},
    "log-probabilities": {"max_tokens": 20, "logprobs": 2},
}


@pytest.mark.parametrize("wish", WISHES)
async def test_nothing_is_said_twice_and_no_other_engine_goes_on_with_a_broken_stream(duet, wish):
    whole, came = await broken(duet, "/v1/completions", TEXT | WISHES[wish], Fault(cut_after=5), 502)
    assert came == whole[:5]
    assert len(duet.decode.seen) == 2


FRAMINGS = {
    "lines end in CR LF": b'data: {"choices":[{"text":"a"}]}\r\n\r\ndata: {"choices":[{"text":"b"}]}\r\n\r\n',
    "lines end in CR": b'data: {"choices":[{"text":"a"}]}\r\rdata: {"choices":[{"text":"b"}]}\r\r',
    "comments": b': ping\n\n: ping\ndata: {"choices":[{"text":"a"}]}\n\n: ping\n\n',
    "no blank after the colon": b'data:{"choices":[{"text":"a"}]}\n\n',
    "names, ids and several lines": b'event: x\nid: 1\nretry: 5\ndata: {"choices":\ndata: [{"text":"a"}]}\n\n',
    "no JSON": b"data: hello\n\ndata\n\n",
    "many events": b'data: {"choices":[{"text":"a"}]}\n\n' * 500,
    "one event of a megabyte": b'data: {"choices":[{"text":"' + b"x" * 2**20 + b'"}]}\n\n',
}


@pytest.mark.parametrize("piece", [1, 7, 100_000, 10_000_000])
@pytest.mark.parametrize("framing", FRAMINGS)
async def test_the_engines_bytes_are_the_clients_however_events_are_framed_and_cut_up(duet, framing, piece):
    text = FRAMINGS[framing]
    if len(text) > 1000 * piece:
        piece = len(text) // 1000
    duet.decode.faults.append(Fault(first_event=text, piece=piece))
    answer = await duet.client.post("/v1/completions", json=TEXT | {"stream": True})
    assert answer.content == text + b"data: [DONE]\n\n"
    assert answer.headers["x-duet-path"] == "pd"
    assert await duet.metric("duet_upstream_failures_total") == 0


@pytest.mark.parametrize("route", ["/v1/responses", "/v1/messages"])
@pytest.mark.parametrize("piece", [1, 100_000])
async def test_events_with_names_are_the_engines_bytes_too(duet, route, piece):
    body = ROUTES[route] | {"stream": True}
    whole = await duet.client.post(route, json=body)
    duet.decode.faults.append(Fault(piece=piece))
    assert split((await duet.client.post(route, json=body)).text) == split(whole.text)
