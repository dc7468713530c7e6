"""The story of `bench`: warm up, drive, look at engines and machine meanwhile, and make figures of it."""

import time
from collections.abc import Sequence
from hashlib import sha256

from pydantic import TypeAdapter

from launcher.measure.bench_shape import Benched, Sent, Settings, Usage
from launcher.measure.conditions_here import conditions
from launcher.measure.driver import drive
from launcher.measure.engines import counting
from launcher.measure.figures import figures, span_of
from launcher.measure.load import Arrivals, Closed, Load, Open
from launcher.measure.made_up import MadeUp
from launcher.measure.notes import notes
from launcher.measure.others import Others
from launcher.measure.request import Request
from launcher.measure.sample import Sample
from launcher.measure.target import Target
from launcher.measure.telling import Tell, quiet
from launcher.measure.workload_file import Work, load
from proxy.topology import Role

_DIGESTED = 100
"""Requests of which the digest is."""
_REQUESTS = TypeAdapter(list[Request])


async def bench(
    target: Target,
    work: Work,
    settings: Settings,
    *,
    reference: str | None,
    overrides: Sequence[str] = (),
    command: str = "",
    ours: Sequence[int] | None = None,
    tell: Tell = quiet,
) -> Benched:
    """Measure a server that is there. ``ours``: further processes of the deployment, which with their children are
    not something else that is busy; ``None``: unknown, or on another machine.

    Raises :class:`launcher.errors.MeasureError` when nothing can be asked.
    """
    known = await conditions(target, command)
    requests = work.requests(settings.seed)
    others, before, began = Others(*(ours or ())), time.process_time(), time.monotonic()
    if settings.seconds is None:
        asked = requests[: settings.requests or len(requests)]
        warm = await _warmed(target, settings, tell)
        samples, counted = await counting(target, drive(target, asked, settings.load, seed=settings.seed, tell=tell))
        warmed_up, span = len(warm), span_of(samples, 0.0, None)
    else:
        until = settings.warm_up + settings.seconds
        run = drive(target, requests, settings.load, seed=settings.seed, seconds=until, tell=tell)
        samples, counted = await counting(target, run, after=settings.warm_up, until=until)
        span = span_of(samples, settings.warm_up, until)
        warmed_up = sum(each.sent < span.start for each in samples)
    usage = Usage(
        client=(time.process_time() - before) / max(1e-9, time.monotonic() - began),
        others=None if ours is None else others.share(),
    )
    made = figures(samples, span, settings.objectives)
    has_prefill = any(each.role == Role.PREFILL for each in target.engines)
    return Benched(
        target=target.name,
        reference=reference,
        overrides=tuple(overrides),
        model=target.model,
        settings=settings,
        sent=Sent(work.name, work.workload.model_dump(mode="json"), work.recorded, digest(requests)),
        conditions=known,
        figures=made,
        counted=counted,
        usage=usage,
        warmed_up=warmed_up,
        notes=tuple(notes(made, samples, counted, usage, settings, has_prefill=has_prefill)),
        samples=samples,
    )


def digest(requests: Sequence[Request]) -> str:
    """Of the first ones."""
    return sha256(_REQUESTS.dump_json([*requests[:_DIGESTED]])).hexdigest()


async def _warmed(target: Target, settings: Settings, tell: Tell) -> tuple[Sample, ...]:
    """By chats of our own: a request that is measured later must not be in a prefix cache by then."""
    if settings.warm_up <= 0:
        return ()
    own = MadeUp(load("chat").workload.parts, -1 - settings.seed)
    return await drive(target, own, _evenly(settings.load), seconds=settings.warm_up, tell=tell)


def _evenly(of: Load) -> Load:
    """A load that needs no times of its requests."""
    if isinstance(of, Open) and of.arrivals is Arrivals.TRACE:
        return Closed(1)
    return of
