"""What people see of a deployment at ``/ui``, in a browser."""

import json
from dataclasses import replace

import pytest

from proxy.keys import new_key
from proxy.settings import Canary, ClientKey, FailurePolicy, Settings
from proxy.topology import Topology
from tests.fakes.engine import FakeEngine, Fault
from tests.proxy.overview.browser import PHONE, needs_a_browser, visiting

pytestmark = needs_a_browser
TEXT = {"model": "fake", "prompt": "x", "max_tokens": 3}
CLIENT, CLIENT_DIGEST = new_key()
OPERATOR, OPERATOR_DIGEST = new_key()
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def expect(target):
    """Waits until what is said of it is so."""
    from playwright.async_api import expect as playwright_expect

    playwright_expect.set_options(timeout=30_000)
    return playwright_expect(target)


async def overview(duet) -> dict:
    return (await duet.client.get("/overview")).json()


async def instead(visit, document: dict) -> None:
    """From now on the page is told this."""

    async def answer(route) -> None:
        await route.fulfill(status=200, content_type="application/json", body=json.dumps(document))

    await visit.page.route("**/overview", answer)


def points(at: float, **values: float | None) -> list[dict]:
    """A history of ten minutes in which nothing changes."""
    unknown = {"acceptance_rate": None, "mean_acceptance_length": None, "ttft_p50": None, "ttft_p95": None}
    unknown |= {"tpot_p50": None, "tpot_p95": None, "output_tokens_per_second": None, "kv_received_share": None}
    known = {"requests_per_second": 0.0, "failed_per_second": 0.0, "in_flight": 0.0, "waiting": 0.0}
    return [
        {**unknown, **known, "kv_cache_usage": None, "pd_share": None, **values, "at": at - 600 + 5 * number}
        for number in range(1, 121)
    ]


async def test_it_shows_the_state_the_pairs_and_the_instances(start):
    duet = await start(canary=Canary())
    async with visiting(duet.url) as visit:
        page = visit.page
        await expect(page.get_by_role("region", name="State of the deployment")).to_contain_text("Ready")
        await expect(page.get_by_role("button", name="prefill-0 to decode-0: Proven")).to_contain_text("KV tokens")
        await expect(page.get_by_role("region", name="Pairs")).to_contain_text("1 of 1 get requests")
        await expect(page.get_by_role("row", name="decode-0 decode")).to_contain_text("Healthy")
        await expect(page.get_by_role("region", name="Recent failures")).to_contain_text("No request has gone wrong")
        await expect(page.get_by_role("region", name="Advice")).to_contain_text("launcher advise --window 600")
        await expect(page.get_by_role("img", name="Time to first token: No streamed answers")).to_be_visible()
        await expect(page).to_have_title("Ready – Duet")
    assert visit.complaints == []


async def test_a_pair_that_fails_turns_to_its_reason_and_back(start):
    duet = await start(canary=Canary())
    async with visiting(duet.url) as visit:
        pair = visit.page.get_by_role("button", name="prefill-0 to decode-0")
        await expect(pair).to_contain_text("Proven")
        duet.decode.recomputes = True
        await duet.client.post("/pairs/prove")
        await expect(pair).to_contain_text("Out of use")
        await expect(pair).to_contain_text("decode computed the prompt itself")
        state = visit.page.get_by_role("region", name="State of the deployment")
        await expect(state).to_contain_text("Degraded")
        await expect(state).to_contain_text("prefill-0 to decode-0: decode computed the prompt itself")
        await expect(visit.page.get_by_role("group", name="The pair in detail")).to_contain_text("recomputed")
        duet.decode.recomputes = False
        await duet.client.post("/pairs/prove")
        await expect(pair).to_contain_text("Proven")
        await expect(state).to_contain_text("Ready")
    assert visit.complaints == []


async def test_a_request_that_fails_is_listed_with_its_reason(start):
    duet = await start(policy=FailurePolicy.FAIL)
    duet.decode.faults.append(Fault(status=500))
    await duet.client.post("/v1/completions", json=TEXT, headers={"x-request-id": "mine"})
    async with visiting(duet.url) as visit:
        row = visit.page.get_by_role("row", name="500 failed")
        await expect(row).to_contain_text("decode-0: the engine answered 500")
        await expect(row).to_contain_text("prefill-0 → decode-0")
        await expect(row).to_contain_text("mine-")
    assert visit.complaints == []


async def test_when_the_proxy_is_gone_it_says_since_when_and_keeps_what_it_knew(duet):
    async with visiting(duet.url) as visit:
        page = visit.page
        await expect(page.get_by_role("region", name="State of the deployment")).to_contain_text("Ready")
        await page.route("**/overview", lambda route: route.abort())
        alert = page.get_by_role("alert").first
        await expect(alert).to_contain_text("The proxy does not answer (no connection), since ")
        await expect(alert).to_contain_text("What you see below is from then")
        await expect(page.get_by_role("row", name="decode-0 decode")).to_be_visible()
        await page.unroute("**/overview")
        await expect(alert).to_be_hidden()
    assert [each for each in visit.complaints if "ERR_FAILED" not in each] == []


async def test_before_the_first_answer_it_says_that_it_asks(duet):
    async with visiting(duet.url) as visit:
        await visit.page.route("**/overview", lambda route: None)  # never answered
        await visit.page.reload()
        await expect(visit.page.get_by_text("Asking the proxy…")).to_be_visible()


async def test_what_engines_and_clients_call_themselves_is_text(start):
    duet = await start(engines=[FakeEngine("prefill", model=MARKUP), FakeEngine("decode", model=MARKUP)])
    document = await overview(duet)
    assert document["instances"][0]["model"] == MARKUP
    document["reasons"] = [MARKUP]
    document["health"] = MARKUP
    document["pairs"] = [
        {**document["pairs"][0], "prefill": name, "decode": MARKUP, "reason": MARKUP, "standing": MARKUP}
        for name in (MARKUP, "__proto__", '"]')
    ]
    document["instances"] = [{**document["instances"][0], "name": MARKUP, "reason": MARKUP, "version": MARKUP}]
    failure = dict.fromkeys(("request_id", "outcome", "path", "bypass", "prefill", "decode", "reason"), MARKUP)
    document["failures"] = [{**failure, "at": document["at"], "status": MARKUP, "endpoint": MARKUP}]
    advice = {"at": document["at"], "advice": [{"technique": MARKUP, "verdict": MARKUP, "reason": MARKUP}]}
    document["about"] = {"profile": MARKUP, "description": MARKUP, "techniques": [MARKUP], "advice": advice}
    async with visiting(duet.url) as visit:
        await instead(visit, document)
        for region in ("State of the deployment", "Pairs", "Instances", "Recent failures", "Deployment", "Advice"):
            await expect(visit.page.get_by_role("region", name=region, exact=True).first).to_contain_text(MARKUP[:20])
        assert await visit.page.locator("img:not(header img)").count() == 0
        assert await visit.page.locator("main script").count() == 0
    assert visit.complaints == []


async def test_charts_tell_the_last_values_and_what_limit_is_exceeded(duet):
    document = await overview(duet)
    values = {"ttft_p50": 0.25, "ttft_p95": 0.75, "acceptance_rate": 0.3, "output_tokens_per_second": 1234.5}
    document["history"]["points"] = points(document["at"], **values, kv_cache_usage=0.5, kv_received_share=0.97)
    for gap in document["history"]["points"][50:60]:
        gap["ttft_p95"] = gap["ttft_p50"] = None
    async with visiting(duet.url) as visit:
        await instead(visit, document)
        for name in (
            "Time to first token: now p95 750 ms, p50 250 ms, over 500 ms",
            "Draft acceptance: now accepted 30 %, under 40 %",
            "Throughput: now tokens/s 1,235",
            "KV cache in use: now fullest 50 %, limit 95 %",
            "KV received from prefill: now of prompt tokens 97 %",
            "Time per output token: No streamed answers",
        ):
            await expect(visit.page.get_by_role("img", name=name)).to_be_visible()
        drawing = visit.page.get_by_role("img", name="Time to first token")
        assert await drawing.locator("polyline.s0").count() == 2  # what is not known is a gap
        await drawing.hover()
        await expect(visit.page.locator("figure").first).to_contain_text(":")  # the time that is pointed at
    assert visit.complaints == []


async def test_one_engine_has_no_pairs(start):
    duet = await start(engines=[FakeEngine("aggregated")])
    async with visiting(duet.url) as visit:
        await expect(visit.page.get_by_role("region", name="Pairs")).to_contain_text("There are no pairs")
        await expect(visit.page.get_by_role("row", name="aggregated-0")).to_contain_text("Healthy")
        await expect(visit.page.get_by_role("region", name="State")).to_contain_text("served by one instance")
    assert visit.complaints == []


@pytest.mark.parametrize("dark", [False, True])
async def test_on_a_phone_nothing_is_wider_than_the_screen(start, dark):
    duet = await start(
        engines=[FakeEngine("prefill"), FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("decode")]
    )
    for _ in range(2):
        duet.decode.faults.append(Fault(cut_after=1))
        await duet.client.post("/v1/completions", json={**TEXT, "stream": True}, headers={"x-request-id": "i" * 40})
    async with visiting(duet.url, size=PHONE, dark=dark) as visit:
        await expect(visit.page.get_by_role("region", name="Recent failures").first).to_contain_text("broken off")
        assert await visit.overflow() <= 0
    assert visit.complaints == []


@pytest.mark.parametrize("size", [PHONE, (1280, 900)])
async def test_the_matrix_has_room_for_144_pairs_that_the_keyboard_reaches(duet, size):
    document = await overview(duet)
    (pair,) = document["pairs"]
    document["pairs"] = [
        {**pair, "prefill": f"prefill-{p}", "decode": f"decode-{d}", "reason": "differs" if p == d == 1 else ""}
        for p in range(12)
        for d in range(12)
    ]
    async with visiting(duet.url, size=size) as visit:
        page = visit.page
        await instead(visit, document)
        await expect(page.locator(".matrix button")).to_have_count(144)
        await page.get_by_role("button", name="prefill-0 to decode-0:").focus()
        for key in ("ArrowRight", "ArrowDown"):
            await page.keyboard.press(key)
        await expect(page.get_by_role("button", name="prefill-1 to decode-1: Not tried yet, differs")).to_be_focused()
        detail = page.get_by_role("group", name="The pair in detail")
        await expect(detail).to_contain_text("prefill-1 → decode-1")
        await expect(detail).to_contain_text("differs")
        assert await page.locator('.matrix button[tabindex="0"]').count() == 1
        assert await visit.overflow() <= 0
    assert visit.complaints == []


async def test_without_an_operators_key_it_only_says_how_to_get_one(start):
    duet = await start(canary=Canary())
    async with visiting(duet.url) as visit:
        await visit.page.get_by_text("Read-only").click()
        await expect(visit.page.get_by_role("region", name="Pairs")).to_contain_text("proxy --new-key NAME")
        assert await visit.page.get_by_role("button", name="Prove every pair now").count() == 0
    assert visit.complaints == []


async def test_with_an_operators_key_every_pair_is_proven_now(start):
    settings = Settings(admin_keys=(ClientKey("olga", OPERATOR_DIGEST),))
    duet = await start(settings=settings, canary=Canary())
    async with visiting(duet.url) as visit:
        page = visit.page
        await page.get_by_text("Unlock actions").click()
        await page.get_by_label("Operator's key").fill("wrong")
        await page.get_by_role("button", name="Unlock").click()
        await expect(page.get_by_text("This is no operator's key.")).to_be_visible()
        await page.get_by_label("Operator's key").fill(OPERATOR)
        await page.get_by_role("button", name="Unlock").click()
        await page.get_by_role("button", name="Prove every pair now").click()
        await expect(page.get_by_role("status")).to_contain_text("The pair is proven.")
        duet.decode.recomputes = True
        await page.get_by_role("button", name="Prove every pair now").click()
        await expect(page.get_by_role("status")).to_contain_text("1 of 1 pairs did not come through")
        assert await page.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
        assert OPERATOR not in page.url
        await page.reload()
        await expect(page.get_by_text("Unlock actions")).to_be_visible()
    assert visit.complaints == []


@pytest.mark.parametrize("key", [CLIENT, OPERATOR], ids=["client", "operator"])
async def test_where_clients_need_a_key_it_asks_for_one(start, key):
    keys = {"client_keys": (ClientKey("a", CLIENT_DIGEST),), "admin_keys": (ClientKey("o", OPERATOR_DIGEST),)}
    duet = await start(settings=replace(Settings(), **keys))
    async with visiting(duet.url) as visit:
        page = visit.page
        await page.get_by_label("Key", exact=True).fill("wrong")
        await page.get_by_role("button", name="Show").click()
        await expect(page.get_by_text("The proxy does not know this key.")).to_be_visible()
        await page.get_by_label("Key", exact=True).fill(key)
        await page.get_by_role("button", name="Show").click()
        await expect(page.get_by_role("region", name="State of the deployment")).to_contain_text("Ready")
        await expect(page.get_by_text("This proxy asks for a key")).to_be_hidden()
    assert [each for each in visit.complaints if "401" not in each] == []


async def test_what_the_launcher_and_the_advisor_said_is_shown(start):
    duet = await start(follow=True)
    about = {"profile": "my-profile", "description": "For tests", "techniques": ["INT8", "PD"], "stage": "pd"}
    told = {"technique": "int8", "verdict": "first-measure", "reason": "Memory is short."}
    about["advice"] = {"at": 1_700_000_000.0, "advice": [told]}
    duet.file.with_name("about.json").write_text(json.dumps(about))
    async with visiting(duet.url) as visit:
        await expect(visit.page.get_by_role("region", name="Deployment", exact=True)).to_contain_text("INT8, PD")
        advice = visit.page.get_by_role("region", name="Advice")
        await expect(advice).to_contain_text("first measure")
        await expect(advice).to_contain_text("d ago")
    assert visit.complaints == []


async def test_an_instance_that_is_added_appears_among_the_pairs(start):
    duet = await start(follow=True)
    async with visiting(duet.url) as visit:
        await expect(visit.page.get_by_role("region", name="Pairs")).to_contain_text("1 of 1")
        async with FakeEngine("decode") as more:
            instance = replace(duet.config.topology.instances[1], name="decode-9", url=more.url)
            instances = (*duet.config.topology.instances, instance)
            await duet.reconfigure(
                lambda config: replace(config, topology=Topology(instances, config.topology.connector))
            )
            await expect(visit.page.get_by_role("button", name="prefill-0 to decode-9")).to_be_visible()
    assert visit.complaints == []
