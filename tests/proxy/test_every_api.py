"""What holds on every route that generates, each in the words of its API."""

import json

import openai
import pytest

from proxy.settings import FailurePolicy, Leg, Timeouts
from tests.fakes.completions import Ending
from tests.fakes.engine import SSE, FakeEngine, Fault

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 8}
CHAT = {"model": "fake", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 8}
RESPONSE = {"model": "fake", "input": "one two three", "max_output_tokens": 8}
MESSAGE = CHAT
ROUTES = {
    "/v1/completions": TEXT,
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSE,
    "/v1/messages": MESSAGE,
}
ENDS = {
    "/v1/completions": "data: [DONE]\n\n",
    "/v1/chat/completions": "data: [DONE]\n\n",
    "/v1/responses": '"type":"response.completed"',
    "/v1/messages": 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
}
every_route = pytest.mark.parametrize(("route", "body"), ROUTES.items(), ids=ROUTES)
both_modes = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def without_ids(text: str) -> list[str]:
    return [part for part in text.split('"') if "cmpl-" not in part and "resp_" not in part]


def events(text: str) -> list[tuple[str, dict]]:
    """Names and documents; every event is whole."""
    assert text.endswith("\n\n")
    told = [event.rpartition("data: ") for event in text.split("\n\n") if event]
    return [(name.removeprefix("event: ").strip(), json.loads(data)) for name, _, data in told if data != "[DONE]"]


def assert_told_as_error(route: str, text: str, code: int) -> None:
    """The stream ends in an event on which clients of the API raise, and does not look complete."""
    *_, (name, last) = events(text)
    assert last["error"]["message"].startswith("decode-0: ")
    assert ENDS[route] not in text
    match route:
        case "/v1/messages":
            assert (name, last["type"], set(last["error"])) == ("error", "error", {"type", "message"})
        case "/v1/responses":
            assert (name, last["type"], last["error"]["code"]) == ("error", "error", code)
        case _:
            assert (name, set(last), last["error"]["code"]) == ("", {"error"}, code)


def assert_refused(route: str, answer, status: int) -> None:
    assert answer.status_code == status
    error = answer.json()["error"]
    if route == "/v1/messages":
        assert answer.json()["type"] == "error"
        assert set(error) == {"type", "message"}
    else:
        assert error["code"] == status


@every_route
@both_modes
async def test_an_answer_through_pd_equals_the_engines_own(duet, start, route, body, stream):
    body = body | {"stream": stream}
    alone = await start(engines=[FakeEngine("aggregated")])
    through = await duet.client.post(route, json=body)
    expected = await alone.client.post(route, json=body)
    assert through.status_code == expected.status_code == 200
    assert through.headers["content-type"] == (SSE if stream else "application/json")
    assert without_ids(through.text) == without_ids(expected.text)
    assert (through.headers["x-duet-path"], expected.headers["x-duet-path"]) == ("pd", "aggregated")
    computed = duet.prefill.by_source["local_compute"]
    assert computed > 0
    assert duet.decode.by_source == {"local_compute": 0, "local_cache_hit": 0, "external_kv_transfer": computed}


@every_route
async def test_both_legs_get_the_query(duet, route, body):
    answer = await duet.client.post(f"{route}?api-version=1&x=%2F", json=body)
    assert answer.headers["x-duet-path"] == "pd"
    assert duet.prefill.seen[0].path == duet.decode.seen[0].path == f"{route}?api-version=1&x=%2F"


@every_route
@both_modes
async def test_prefill_makes_one_token_and_decode_what_the_client_asked_for(duet, route, body, stream):
    raw = json.dumps(body | {"stream": stream}).encode()
    await duet.client.post(route, content=raw, headers={"content-type": "application/json"})
    asked = json.loads(duet.prefill.seen[0].body)
    assert asked["stream"] is False
    assert {value for key, value in asked.items() if key.startswith("max_")} == {1}
    assert duet.decode.seen[0].body.startswith(raw[:-1])


@every_route
@both_modes
async def test_kv_that_cannot_be_loaded_is_computed_by_decode(duet, route, body, stream):
    duet.decode.faults.append(Fault(ending=Ending("error")))
    answer = await duet.client.post(route, json=body | {"stream": stream})
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "decode_failed")
    assert "error" not in answer.text
    assert "kv_transfer_params" not in json.loads(duet.decode.seen[1].body)


@every_route
@both_modes
@pytest.mark.parametrize(("ending", "status"), [("error", 500), ("abort", 503)])
async def test_under_the_policy_fail_a_request_without_a_token_has_a_true_status(
    start, route, body, stream, ending, status
):
    duet = await start(policy=FailurePolicy.FAIL)
    duet.decode.faults.append(Fault(ending=Ending(ending)))
    answer = await duet.client.post(route, json=body | {"stream": stream})
    if route != "/v1/messages" or status == 503 or not stream:  # else the engine's own words are all there is
        assert_refused(route, answer, status)
    assert answer.status_code == status
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0") == 1


@every_route
@both_modes
async def test_a_prefill_that_gives_up_is_passed_by(duet, route, body, stream):
    duet.prefill.faults.append(Fault(ending=Ending("abort")))
    answer = await duet.client.post(route, json=body | {"stream": stream})
    assert (answer.status_code, answer.headers["x-duet-bypass"]) == (200, "prefill_failed")


BROKEN = [(Fault(cut_after=4), 502), (Fault(end_after=4), 502), (Fault(stall_after=4), 504)]


@every_route
@pytest.mark.parametrize(("fault", "code"), BROKEN)
async def test_a_stream_that_breaks_ends_in_an_error_event(start, route, body, fault, code):
    duet = await start(timeouts=Timeouts(decode=Leg(idle=0.5)) if fault.stall_after else None)
    duet.decode.faults.append(fault)
    answer = await duet.client.post(route, json=body | {"stream": True})
    assert answer.status_code == 200
    assert_told_as_error(route, answer.text, code)
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0") == 1
    await duet.idle()


@every_route
async def test_half_an_event_is_never_passed_on(duet, route, body):
    pieces = 6 if route == "/v1/responses" else 3
    duet.decode.faults.append(Fault(piece=500, cut_after=pieces))
    answer = await duet.client.post(route, json=body | {"stream": True})
    assert_told_as_error(route, answer.text, 502)


@pytest.mark.parametrize("route", [route for route in ROUTES if route != "/v1/responses"])  # which has no word for it
@pytest.mark.parametrize("piece", [None, 7, 100_000])
async def test_an_abort_after_some_tokens_ends_in_an_error_event(duet, route, piece):
    duet.decode.faults.append(Fault(ending=Ending("abort", 3), piece=piece))
    answer = await duet.client.post(route, json=ROUTES[route] | {"stream": True})
    assert_told_as_error(route, answer.text, 503)
    assert '"abort"' not in answer.text
    assert '"stop_reason":null,"stop_sequence":null},"usage":{"input_tokens":3,"output_tokens":3' not in answer.text
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0", kind="aborted") == 1
    await duet.idle()


@every_route
async def test_an_error_after_some_tokens_is_told_once_and_counted(duet, route, body):
    duet.decode.faults.append(Fault(ending=Ending("error", 3)))
    answer = await duet.client.post(route, json=body | {"stream": True})
    assert sum("error" in document for _, document in events(answer.text)) == 1
    assert ENDS[route] not in answer.text
    assert await duet.metric("duet_upstream_failures_total", engine="decode-0") == 1


@every_route
async def test_what_the_proxy_refuses_it_refuses_in_the_apis_form(duet, start, route, body):
    assert_refused(route, await duet.client.post(route, content=b"{bad"), 400)
    assert_refused(route, await (await start(engines=[])).client.post(route, json=body), 503)


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({"previous_response_id": "resp_1"}, "stored_response"),
        ({"background": True}, "stored_response"),
        ({"tools": [{"type": "web_search_preview"}]}, "server_tools"),
    ],
)
async def test_a_response_that_depends_on_one_engine_is_served_by_one(duet, extra, reason):
    answer = await duet.client.post("/v1/responses", json=RESPONSE | extra)
    assert answer.headers["x-duet-bypass"] == reason
    assert duet.prefill.seen == []


async def test_prefill_stores_no_response(duet):
    await duet.client.post("/v1/responses", json=RESPONSE | {"store": True})
    assert json.loads(duet.prefill.seen[0].body)["store"] is False
    assert json.loads(duet.decode.seen[0].body)["store"] is True


async def test_the_openai_client_reads_responses_and_raises_on_broken_ones(duet):
    duet.decode.faults.extend([Fault(), Fault(), Fault(cut_after=5)])
    async with openai.AsyncOpenAI(base_url=duet.url + "/v1", api_key="k", max_retries=0) as client:
        whole = await client.responses.create(**RESPONSE)
        parts = [event async for event in await client.responses.create(**RESPONSE, stream=True)]
        assert (
            "".join(event.delta for event in parts if event.type == "response.output_text.delta") == whole.output_text
        )
        stream = await client.responses.create(**RESPONSE, stream=True)
        with pytest.raises(openai.APIError, match="decode-0"):
            async for _ in stream:
                pass


async def test_the_number_of_an_error_event_follows_the_last(duet):
    duet.decode.faults.append(Fault(cut_after=5))
    answer = await duet.client.post("/v1/responses", json=RESPONSE | {"stream": True})
    assert [document["sequence_number"] for _, document in events(answer.text)] == [0, 1, 2, 3, 4, 5]
