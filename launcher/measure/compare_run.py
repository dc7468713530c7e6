"""The story of `launcher compare`: blocks of both sides by turns, then the judgement."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from launcher.measure import compare
from launcher.measure.bench import digest
from launcher.measure.bench_shape import Sent
from launcher.measure.compare_asked import Asked, BlockTold, Compared
from launcher.measure.compare_failures import more_failures
from launcher.measure.compare_order import order, pair_of
from launcher.measure.compare_quality import agreement, right
from launcher.measure.compare_shape import Block, Side
from launcher.measure.conditions import Conditions
from launcher.measure.conditions_here import conditions
from launcher.measure.driver import drive
from launcher.measure.figures import figures
from launcher.measure.figures_shape import Span
from launcher.measure.load import Closed
from launcher.measure.others import Others
from launcher.measure.request import Request
from launcher.measure.served import is_url, measured
from launcher.measure.target import Target
from launcher.measure.telling import Tell, quiet
from launcher.measure.workload_file import Work

_PROBES = 24
"""Greedy requests that each block begins with: its warm-up, and what texts are compared by."""
_PROBE_SEED = 7_000_003
_RAMP = 0.1
"""Share of a block that is not counted: all clients begin at once."""
_DISTURBED = 0.15


async def run(
    asked: Asked, work: Work, folder: Path, command: str, tell: Tell = quiet, *, key: str | None = None
) -> Compared:
    """Profiles are started for each block, so that also how one start differs from the next is in the interval.

    Raises :class:`launcher.errors.LauncherError` when a side cannot be started or asked.
    """
    known: dict[Side, Conditions] = {}
    blocks: list[Block] = []
    told: list[BlockTold] = []
    for number, side in enumerate(order(asked.pairs)):
        pair, served = pair_of(number), asked.a if side is Side.A else asked.b
        requests = _requests(work, asked, pair)

        async def block(target: Target, side: Side = side, requests: Sequence[Request] = requests) -> list[Block]:
            if side not in known:
                known[side] = await conditions(target, command)
            return [await _block(target, asked, work, requests, tell)]

        tell(f"block {number + 1} of {2 * asked.pairs}: {served.name}", 0, 0)
        (found,) = await measured(
            served.reference,
            served.overrides,
            folder / f"{number + 1}-{side}",
            block,
            tell,
            key=key,
            model=asked.model if is_url(served.reference) else None,
        )
        found = replace(found, side=side, pair=pair)
        blocks.append(found)
        failed = sum(each.error is not None for each in found.samples)
        others = None if is_url(served.reference) else found.others
        told.append(BlockTold(side, pair, len(found.samples), failed, found.metrics, others))
    quality = right(blocks, {pair: _requests(work, asked, pair) for pair in range(asked.pairs)}) or agreement(blocks)
    judged = compare.compare(
        asked.a.name, asked.b.name, blocks, quality, margin=asked.margin, notes=_notes(asked, told)
    )
    judged = more_failures(judged, told)
    sent = Sent(work.name, work.workload.model_dump(mode="json"), work.recorded, digest(_requests(work, asked, 0)))
    return Compared(asked, sent, judged, tuple(told), known)


async def _block(target: Target, asked: Asked, work: Work, requests: Sequence[Request], tell: Tell) -> Block:
    probes = [_greedy(each) for each in work.requests(asked.seed + _PROBE_SEED)[:_PROBES]]
    at_once = asked.load.concurrency if isinstance(asked.load, Closed) else 4
    texts = await drive(target, probes, Closed(at_once), keep_text=True, tell=tell)
    others = Others()
    samples = await drive(
        target, requests, asked.load, seed=asked.seed, seconds=asked.seconds, keep_text=True, tell=tell
    )
    found = figures(samples, Span(_RAMP * asked.seconds, asked.seconds), asked.objectives)
    return Block(Side.A, 0, samples, asked.seconds, texts, compare.measured(found), others.share())


def _requests(work: Work, asked: Asked, pair: int) -> Sequence[Request]:
    """Others for each pair, so that no prefix cache has them; real ones begin at another place."""
    found = work.requests(asked.seed + pair)
    if not work.recorded:
        return found
    at = pair * len(found) // asked.pairs
    return [*found[at:], *found[:at]]


def _greedy(request: Request) -> Request:
    return replace(request, body={**request.body, "temperature": 0})


def _notes(asked: Asked, told: Sequence[BlockTold]) -> Iterator[str]:
    yield from asked.a.said
    for side, served in ((Side.A, asked.a), (Side.B, asked.b)):
        mine = [each for each in told if each.side is side]
        if failed := sum(each.failed for each in mine):
            yield f"{served.name}: {failed} of {sum(each.requests for each in mine)} requests failed"
    disturbed = [number + 1 for number, each in enumerate(told) if (each.others or 0.0) > _DISTURBED]
    if disturbed:
        which = ", ".join(map(str, disturbed))
        yield f"other programs took more than {_DISTURBED:.0%} of the machine in blocks {which}: measure on an idle one"


def by_side(told: Sequence[BlockTold]) -> Mapping[Side, Sequence[BlockTold]]:
    """In the order in which they ran."""
    return {side: [each for each in told if each.side is side] for side in Side}
