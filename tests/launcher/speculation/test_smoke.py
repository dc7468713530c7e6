"""Right after a start it is told whether speculation does anything, with cause and fix; the start never fails."""

import json

import httpx
import pytest

from launcher import loader, planner
from launcher.speculation.counters import Counts
from launcher.speculation.smoke import Configured, configured, judged, smoke
from tests.launcher.builders import MACHINE, PAIR, RUN_DIRECTORY, write

NGRAM = Configured("ngram", 4, 4)
SPECULATING = PAIR + "    speculation: {method: ngram, num_speculative_tokens: 4}\n"


def plan_of(folder, text):
    return planner.plan(loader.load(str(write(folder, text))), MACHINE, name="mine", run_directory=RUN_DIRECTORY)


def test_what_works_is_told_in_one_line():
    said = judged(NGRAM, Counts(64, 5, 20, 12), None)
    assert said.text == "speculation works: 5 drafts, 60% of their tokens accepted"
    assert not said.is_warning


@pytest.mark.parametrize(
    ("through", "alone", "part"),
    [
        (Counts(64, 0, 0, 0), None, "prompt_lookup_min"),
        (Counts(64, 30, 120, 0), None, "none of 120 drafted tokens was accepted; this model does not go on"),
        (Counts(64, 30, 120, 12), Counts(64, 15, 60, 48), "10% of their tokens accepted, but 80% where decode"),
        (None, None, "do not tell"),
    ],
)
def test_what_does_not_work_is_a_warning_with_its_cause(through, alone, part):
    said = judged(NGRAM, through, alone)
    assert said.is_warning
    assert part in said.text


def test_a_draft_of_which_nothing_is_accepted_may_be_for_another_model():
    said = judged(Configured("eagle3", 3, 3), Counts(64, 30, 90, 0), None)
    assert said.is_warning
    assert "for this very model" in said.text


def test_what_is_configured_is_read_from_the_plan(tmp_path):
    assert configured(plan_of(tmp_path, SPECULATING)) == NGRAM
    assert configured(plan_of(tmp_path, PAIR)) is None
    scheduled = SPECULATING.replace("tokens: 4}", "tokens: 4, schedule: [[1, 2, 0], [3, 8, 4]]}")
    assert configured(plan_of(tmp_path, scheduled)) == Configured("ngram", 4, 0)


class Engines:
    """Both engines and the proxy: each answer adds to what decode counts."""

    def __init__(self, status=200):
        self.asked, self.status = [], status

    def __call__(self, request):
        if request.url.path == "/metrics":
            count = len(self.asked)
            names = {"generation_tokens": 64, "spec_decode_num_drafts": 10}
            names |= {"spec_decode_num_draft_tokens": 40, "spec_decode_num_accepted_tokens": 30}
            lines = [f'vllm:{name}_total{{engine="0"}} {value * count}' for name, value in names.items()]
            return httpx.Response(200, text="\n".join(lines) + "\n")
        if self.status == 0:
            raise httpx.ConnectError("refused")
        self.asked.append((str(request.url), json.loads(request.content)))
        return httpx.Response(self.status, json={})


async def told(folder, text, engines):
    async with httpx.AsyncClient(transport=httpx.MockTransport(engines)) as client:
        return await smoke(plan_of(folder, text), client)


async def test_one_text_that_repeats_is_asked_for_through_the_proxy(tmp_path):
    engines = Engines()
    said = await told(tmp_path, SPECULATING, engines)
    assert said is not None
    assert said.text == "speculation works: 10 drafts, 75% of their tokens accepted"
    ((url, body),) = engines.asked
    assert url == "http://127.0.0.1:8000/v1/completions"
    assert body["max_tokens"] == 64


async def test_a_method_with_a_kv_cache_of_its_own_is_also_asked_for_without_prefill(tmp_path):
    draft = PAIR + "    speculation: {method: draft_model, draft: org/small, num_speculative_tokens: 4}\n"
    engines = Engines()
    await told(tmp_path, draft, engines)
    assert len(engines.asked) == 2
    assert engines.asked[0][1]["prompt"] != engines.asked[1][1]["prompt"]


async def test_without_speculation_nothing_is_asked(tmp_path):
    engines = Engines()
    assert await told(tmp_path, PAIR, engines) is None
    assert engines.asked == []


@pytest.mark.parametrize(("status", "part"), [(401, "asks clients for a key"), (503, "answered 503"), (0, "refused")])
async def test_what_cannot_be_asked_is_told_and_raises_nothing(tmp_path, status, part):
    said = await told(tmp_path, SPECULATING, Engines(status))
    assert said is not None
    assert part in said.text
