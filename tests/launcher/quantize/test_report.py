"""The report is one page that anybody can read, and the same for the same outcome."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from launcher.quantize import manifest, report
from launcher.quantize.outcome import Outcome
from tests.launcher.quantize.outcomes import ALL, FAILED, FORCED, PASSED, REFUSED, UNDECIDED, WITH_TASK


class Seen(HTMLParser):
    """Words, tags and ids of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words, self.tags, self.ids, self.links = "", set[str](), list[str](), list[str]()
        self._within: list[str] = []
        self.feed(page)
        self.words = " ".join(self.words.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._within.append(tag)
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name in ("src", "href", "xlink:href") and value:
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        while self._within and self._within.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" not in self._within:
            self.words += f" {data}"


def seen(outcome: Outcome) -> Seen:
    return Seen(report.render(outcome))


@pytest.mark.parametrize("outcome", ALL.values(), ids=ALL)
def test_a_page_needs_nothing_else_and_is_the_same_each_time(outcome: Outcome):
    page = report.render(outcome)
    found = Seen(page)
    assert page == report.render(outcome)
    assert not found.tags & {"script", "link", "img", "iframe"}
    assert all(link.startswith("#") for link in found.links)
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(found.ids)
    assert "@import" not in page
    assert str(outcome.headline) in found.words
    assert outcome.command in found.words


def test_a_pass_says_where_the_model_is_and_what_to_run_next():
    words = seen(PASSED).words
    assert "Passed" in words
    assert "The quantized model is in models/small-int8. The original was not touched." in words
    assert words.index("launcher up PROFILE --model models/small-int8") < words.index("What was done")
    assert "42% smaller" in words
    assert "plan with 188 MB for the weights" in words
    assert "26% faster" in words
    assert "No labelled task was given" in words


def test_a_fail_says_that_nothing_was_published_and_shows_the_sensitive_layers():
    words = seen(FAILED).words
    assert "Nothing was published, and the original was not touched" in words
    assert "19% slower" in words
    assert "28.mlp.down_proj" in words
    assert "4 sensitive units (10.1% of the weights)" in words


def test_an_undecided_one_is_neither():
    assert "Not decided" in seen(UNDECIDED).words


def test_a_refusal_by_a_guard_tells_of_it_and_of_no_quality():
    words = seen(REFUSED).words
    assert "It was not measured: a guard refused the result first" in words
    assert "refused scales 3 of 210 layers have scales that are no numbers" in words
    assert "Refused: scales" in words
    assert "Speed was not measured" in words


def test_a_forced_one_warns():
    assert "It was published all the same, as was asked, to models/small-int8" in seen(FORCED).words


def test_a_labelled_task_is_told_in_counts():
    words = seen(WITH_TASK).words
    assert "Right only by the original 41" in words
    assert "68.2 % right" in words
    assert "No labelled task was given" not in words


def test_reasons_beyond_the_checks_stand_first():
    last = UNDECIDED.attempts[-1]
    assert last.judgement is not None
    judgement = replace(last.judgement, reasons=("Only 12 records could be compared.", *last.judgement.reasons))
    words = seen(replace(UNDECIDED, attempts=(replace(last, judgement=judgement),))).words
    assert words.count("Only 12 records could be compared.") == 1


def test_text_of_others_is_text():
    words = seen(replace(PASSED, model="<script>alert(1)</script>", headline="A & <b>")).words
    assert "<script>alert(1)</script>" in words
    assert "A & <b>" in words


def test_a_model_judged_by_nothing_that_is_sized_or_counted_is_shown_too():
    last = PASSED.attempts[-1]
    assert last.judgement is not None
    bare = replace(last.judgement, checks=(), reasons=("Nothing could be compared.",), kl_of_records=(), records=0)
    outcome = replace(PASSED, attempts=(replace(last, judgement=bare, size=300_000_000, guards=()),), calibration={})
    words = seen(outcome).words
    assert "12% larger" in words
    assert "Nothing could be compared." in words


def test_the_figures_are_there_for_programs():
    told = json.loads(report.to_json(FAILED))
    assert told["verdict"] == "fail"
    assert [each["number"] for each in told["attempts"]] == [1, 2, 3]
    assert told["attempts"][2]["judgement"]["checks"][1]["figure"]["value"] == 0.228
    assert json.loads(report.to_json(replace(PASSED, seconds=float("nan"))))["seconds"] is None


def test_the_manifest_says_where_a_checkpoint_comes_from_and_has_no_text_of_users():
    told = json.loads(manifest.to_json(PASSED))
    assert told["verdict"] == "pass"
    assert told["command"] == PASSED.command
    assert (told["algorithm"], told["recipe"]) == ("SmoothQuant + GPTQ", {"scheme": "int8", "smoothing": 0.8})
    assert told["digests"] == PASSED.digests
    assert told["checks"]["token KL"]["limit"] == 0.1
    assert told["calibration"] == {
        "used": 400,
        "held_out": 64,
        "tokens": 150_000,
        "max_tokens": 2048,
        "chat_template": True,
    }
    assert manifest.to_json(PASSED) == manifest.to_json(PASSED)
    assert json.loads(manifest.to_json(REFUSED))["checks"] == {}
