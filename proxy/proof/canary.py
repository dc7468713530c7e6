"""Sends one canary through a pair, on the way that requests take, and looks for evidence on both sides."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import tenacity

from proxy.answer import json_object
from proxy.completion import Completion
from proxy.endpoint import Endpoint
from proxy.engine import EngineClient
from proxy.errors import EngineFailure, EngineRejection, EngineUnreachable, NoInstance, ProxyError
from proxy.evidence import NoEvidence
from proxy.exchange import Call, Exchange, Whole
from proxy.handoff import Handoff
from proxy.handoff.protocol import Order
from proxy.handover import HandOver, HandOverFailed
from proxy.headers import RequestId, to_engine
from proxy.health.probe import NoModel, metrics_of, model_of
from proxy.health.readings import Readings
from proxy.metrics import Metrics
from proxy.pool import Member
from proxy.proof.judge import Token, difference, tokens_of, tolerance_for
from proxy.proof.proof import Proof, Verdict
from proxy.proof.question import VOCABULARY_TEXT, Question, ask, length
from proxy.proof.uncovered import Uncovered, received_by
from proxy.record import Record
from proxy.settings import Canary as Settings
from proxy.settings import FailurePolicy, Leg

_HEADERS = [(b"content-type", b"application/json")]
_BLOCK = 16
"""Tokens, when an engine does not say."""
_ASIDE = 0.25
"""Of a canary's time, for each question beside it: a route of an engine that hangs is no failed hand-over."""
_COUNTING = 2.0
"""Seconds; an engine counts a request's tokens a moment after it has answered."""


class _Unproven(Exception):
    """A canary that did not come through."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict


@dataclass(frozen=True, slots=True)
class _Tally:
    """Both sides' counters at one moment."""

    prefill: Readings | None
    decode: Readings

    def moved_since(self, before: "_Tally") -> tuple[float, float]:
        """Bytes and seconds of transfers, by the side that counts them."""
        spans = [(before.prefill, self.prefill), (before.decode, self.decode)]
        known = [(one, other) for one, other in spans if one is not None and other is not None]
        return (
            sum(other.moved_bytes - one.moved_bytes for one, other in known),
            sum(other.moved_seconds - one.moved_seconds for one, other in known),
        )


class Canary:
    """Proves pairs, one after the other or several at a time; those of one decode instance one after the other."""

    def __init__(
        self,
        settings: Settings,
        client: EngineClient,
        exchange: Exchange,
        handover: HandOver,
        metrics: Metrics,
        random: Random,
    ) -> None:
        """``handover`` judges nobody by what it sees."""
        self._settings = settings
        self._client = client
        self._exchange = exchange
        self._handover = handover
        self._metrics = metrics
        self._random = random

    async def prove(self, handoff: Handoff, prefill: Member, decode: Member) -> Proof:
        """Send one; what it has shown. Never fails."""
        try:
            async with asyncio.timeout(self._settings.timeout):
                if handoff.order is Order.CONCURRENT and not handoff.has_bootstrap and prefill.source is None:
                    # Makes it known: from then on the legs run side by side.
                    await self._prove(handoff, prefill, decode)
                return await self._prove(handoff, prefill, decode)
        except _Unproven as exc:
            return Proof(exc.verdict, time.time(), str(exc))
        except TimeoutError:
            # A canary in a queue shows nothing. One that hangs where nobody waits does.
            others = prefill.in_flight + decode.in_flight
            verdict = Verdict.UNDECIDED if others else Verdict.FAILED
            return Proof(verdict, time.time(), f"no answer within {self._settings.timeout:g} s")

    async def _prove(self, handoff: Handoff, prefill: Member, decode: Member) -> Proof:
        before = await self._tally(prefill, decode)
        block = before.decode.block_size or _BLOCK
        question = await self._question(decode, handoff.movement.piece(block))
        wanted = handoff.movement.moved(len(question.prompt), block)
        if not wanted:
            raise _Unproven(Verdict.IMPOSSIBLE, "the KV of prompts as short as the model takes them does not move")
        started = time.monotonic()
        way = Uncovered(handoff) if handoff.order is Order.SEQUENTIAL else handoff
        try:
            answer = await self._through(way, question.completion("handed-over"), prefill, decode)
        except _Unproven as exc:
            if exc.verdict is not Verdict.FAILED:
                raise
            raise _Unproven(Verdict.FAILED, f"{exc}{await self._lost(prefill, decode, before)}") from exc
        seconds = time.monotonic() - started
        after = await self._counted(prefill, decode, before, wanted)
        told = received_by(answer)
        received = round((after.decode.received or 0) - (before.decode.received or 0)) if told is None else told
        reference = await self._alone(question.completion("alone", dict(handoff.movement.reference)), decode)
        tolerance = self._settings.tolerance
        wrong = difference(
            _tokens(answer, decode),
            _tokens(reference, decode),
            tolerance_for(before.decode.kv_dtype) if tolerance is None else tolerance,
        )
        if wrong:
            raise _Unproven(Verdict.WRONG_TEXT, wrong)
        if received < wanted:
            asked = len(question.prompt)
            raise _Unproven(
                Verdict.RECOMPUTED,
                f"decode computed the prompt itself: by its account it took {received} of {asked} tokens from outside",
            )
        moved, transfer = after.moved_since(before)
        return Proof(
            Verdict.PROVEN,
            time.time(),
            tokens=min(received, len(question.prompt)),
            seconds=seconds,
            bytes=round(moved) or None,
            transfer_seconds=transfer or None,
        )

    async def _question(self, decode: Member, block: int) -> Question:
        limit = _ASIDE * self._settings.timeout
        try:
            async with asyncio.timeout(limit):
                model, longest = await model_of(self._client, decode.instance, limit)
                body = json.dumps({"model": model, "prompt": VOCABULARY_TEXT, "add_special_tokens": False}).encode()
                answer = await self._client.open(decode.instance, "POST", "/tokenize", _HEADERS, body, Leg())
                try:
                    vocabulary = json_object(await answer.read()).get("tokens")
                finally:
                    await answer.aclose()
        except TimeoutError as exc:
            detail = f"{decode.instance.name} does not answer GET /v1/models and POST /tokenize within {limit:g} s"
            raise _Unproven(Verdict.UNDECIDED, detail) from exc
        except NoModel as refused:
            verdict = Verdict.IMPOSSIBLE if refused.status < 500 else Verdict.UNDECIDED
            raise _Unproven(verdict, f"{refused}{_hint(refused.status)}") from refused
        except EngineFailure as failure:
            raise _Unproven(Verdict.UNDECIDED, str(failure)) from failure
        if not isinstance(vocabulary, list):
            raise _Unproven(
                Verdict.IMPOSSIBLE, f"{decode.instance.name} answers POST /tokenize with status {answer.status}"
            )
        try:
            return ask(model, vocabulary, length(block, longest), self._random)
        except ValueError as exc:
            raise _Unproven(Verdict.IMPOSSIBLE, str(exc)) from exc

    async def _through(self, handoff: Handoff, completion: Completion, prefill: Member, decode: Member) -> bytes:
        once = iter((decode,))
        try:
            answer = await self._handover.through(
                _call(completion), handoff, prefill, lambda unreachable: next(once, None)
            )
        except HandOverFailed as exc:
            nobody = isinstance(exc.failure, EngineUnreachable | NoInstance)
            raise _Unproven(Verdict.UNDECIDED if nobody else Verdict.FAILED, str(exc.failure)) from exc
        except EngineRejection as refused:
            raise _Unproven(Verdict.IMPOSSIBLE, _refusal(refused)) from refused
        except ProxyError as failure:
            raise _Unproven(Verdict.FAILED, str(failure)) from failure
        assert isinstance(answer, Whole)
        return answer.body

    async def _alone(self, completion: Completion, decode: Member) -> bytes:
        evidence = NoEvidence(decode, self._metrics)
        try:
            answer = await self._exchange.serve(_call(completion), decode, completion.body, evidence)
        except EngineRejection as refused:
            raise _Unproven(Verdict.IMPOSSIBLE, _refusal(refused)) from refused
        except ProxyError as failure:
            raise _Unproven(Verdict.UNDECIDED, f"without prefill: {failure}") from failure
        assert isinstance(answer, Whole)
        return answer.body

    async def _tally(self, prefill: Member, decode: Member) -> _Tally:
        limit = _ASIDE * self._settings.timeout
        texts = await asyncio.gather(
            *(metrics_of(self._client, member.instance, limit) for member in (prefill, decode))
        )
        ours, theirs = (None if text is None else Readings.of(text) for text in texts)
        if theirs is None or theirs.received is None:
            name = decode.instance.name
            if texts[1] is None:
                raise _Unproven(Verdict.UNDECIDED, f"{name} does not answer GET /metrics")
            raise _Unproven(
                Verdict.IMPOSSIBLE, f"{name} does not count where prompts come from: are its statistics off?"
            )
        return _Tally(ours, theirs)

    async def _counted(self, prefill: Member, decode: Member, before: _Tally, wanted: int) -> _Tally:
        """The counters when they have risen as they should, or have had the time to."""
        due = (before.decode.received or 0) + wanted
        return await self._tally_when(lambda tally: (tally.decode.received or 0) >= due, prefill, decode)

    async def _lost(self, prefill: Member, decode: Member, before: _Tally) -> str:
        """What decode counts of a hand-over that failed: its answer says only that it did."""
        known = before.decode.failed_transfers
        try:
            tally = await self._tally_when(lambda tally: tally.decode.failed_transfers > known, prefill, decode)
        except _Unproven:
            return ""
        lost = tally.decode.failed_transfers - known
        return (
            f"; by its counter {lost:.0f} hand-shakes or transfers of KV failed, its log says why" if lost > 0 else ""
        )

    async def _tally_when(self, met: Callable[[_Tally], bool], prefill: Member, decode: Member) -> _Tally:
        """The counters when a condition is met, or could have been."""
        patiently = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_result(lambda tally: not met(tally)),
            wait=tenacity.wait_fixed(0.05),
            stop=tenacity.stop_after_delay(_COUNTING),
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        )
        tally: _Tally = await patiently(self._tally, prefill, decode)
        return tally


def _call(completion: Completion) -> Call:
    name = f"duet-canary-{uuid.uuid4().hex}"
    record = Record(RequestId(name, name), Endpoint.COMPLETIONS)
    return Call("/v1/completions", to_engine(_HEADERS, name), completion, record, FailurePolicy.FAIL)


def _tokens(answer: bytes, decode: Member) -> list[Token]:
    try:
        return tokens_of(answer)
    except ValueError as exc:
        raise _Unproven(Verdict.IMPOSSIBLE, f"{decode.instance.name}: {exc}") from exc


def _refusal(refused: EngineRejection) -> str:
    said = refused.body[:200].decode(errors="replace")
    return f"the engines refuse the canary with status {refused.status}{_hint(refused.status)}: {said}"


def _hint(status: int) -> str:
    return ": name the engines' key with proxy.engine_key_env" if status in (401, 403) else ""
