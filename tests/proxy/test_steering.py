"""When a request skips prefill, and what is found out about it."""

import json
from random import Random

import pytest

from proxy.breaker import Breaker
from proxy.completion import Bypass, parse
from proxy.endpoint import Endpoint
from proxy.hint import NO_HINT
from proxy.pool import Member
from proxy.settings import Breaker as Limits
from proxy.settings import ConditionalPD, Policy, Selection, Settings
from proxy.steering import Steering, instead_of_pd
from proxy.topology import Instance, Role

OFF = ConditionalPD()
SHORT = ConditionalPD(shorter_than=100)
CACHED = ConditionalPD(uncached_shorter_than=100)
IDLE = ConditionalPD(idle_decode=True)
ALL = ConditionalPD(shorter_than=100, uncached_shorter_than=100, idle_decode=True)


@pytest.mark.parametrize(
    ("pd", "tokens", "uncached", "idle", "reason"),
    [
        (OFF, 0, 0, True, None),
        (OFF, 5000, 5000, False, None),
        (SHORT, 99, 99, False, Bypass.SHORT_PROMPT),
        (SHORT, 100, 0, True, None),
        (CACHED, 5000, 99, False, Bypass.CACHED_PROMPT),
        (CACHED, 5000, 100, True, None),
        (IDLE, 5000, 5000, True, Bypass.IDLE_DECODE),
        (IDLE, 0, 0, False, None),
        (ALL, 99, 0, True, Bypass.SHORT_PROMPT),
        (ALL, 5000, 99, True, Bypass.CACHED_PROMPT),
        (ALL, 5000, 5000, True, Bypass.IDLE_DECODE),
        (ALL, 5000, 5000, False, None),
    ],
)
def test_the_first_threshold_that_applies_is_the_reason(pd, tokens, uncached, idle, reason):
    assert instead_of_pd(pd, tokens=tokens, uncached=uncached, idle=idle) is reason


def steering(selection: Selection | None = None, pd: ConditionalPD = OFF) -> Steering:
    return Steering(Settings(selection=selection or Selection(), pd=pd), Random(1))


def test_by_default_nothing_is_found_out():
    assert steering().hint(parse(b'{"prompt":"x"}', Endpoint.COMPLETIONS), [(b"x-session-id", b"mine")]) is NO_HINT
    assert not steering().conditional


@pytest.mark.parametrize(
    ("selection", "pd", "tokens", "blocks", "session"),
    [
        (Selection(prefill=Policy.PREFIX_AFFINITY), OFF, 250, 3, None),
        (Selection(prefill=Policy.TTFT), OFF, 250, 3, None),
        (Selection(decode=Policy.SESSION_AFFINITY), OFF, 0, 0, "mine"),
        (None, SHORT, 250, 0, None),
        (None, CACHED, 250, 3, None),
        (Selection(decode=Policy.SESSION_AFFINITY), SHORT, 250, 0, "mine"),
    ],
)
def test_only_what_is_needed_is_found_out(selection, pd, tokens, blocks, session):
    completion = parse(json.dumps({"prompt": "x" * 1000}).encode(), Endpoint.COMPLETIONS)
    hint = steering(selection, pd).hint(completion, [(b"x-session-id", b"mine")])
    assert (hint.tokens, len(hint.blocks), hint.session) == (tokens, blocks, session)


def test_another_header_can_name_the_session():
    chosen = steering(Selection(decode=Policy.SESSION_AFFINITY, session_header="X-Conversation"))
    hint = chosen.hint(parse(b"{}", Endpoint.CHAT), [(b"x-session-id", b"one"), (b"x-conversation", b"other")])
    assert hint.session == "other"


def test_no_candidates_no_choice():
    assert steering().choose([], NO_HINT) is None


def test_no_more_is_remembered_than_was_asked_for():
    chosen = steering(Selection(prefill=Policy.PREFIX_AFFINITY, remembered_tokens=640))
    member = Member(Instance("prefill-0", Role.PREFILL, ""), Breaker(Limits()))
    hint = chosen.hint(parse(json.dumps({"prompt": "x" * 10_000}).encode(), Endpoint.COMPLETIONS), [])
    with chosen.prefilling(member, hint):
        assert member.load.prefixes.match(hint.blocks) == 10
