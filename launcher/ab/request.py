"""Decision: the split of an experiment that was asked for, and why it cannot be."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from proxy.config import ProxyConfig
from proxy.pools import MAIN
from proxy.split import BUCKETS, Experiment, Guards, Split, SplitBy, split_faults

USUAL = Experiment("", "")
"""Its limits, where none are given."""


@dataclass(frozen=True, slots=True)
class AbRequest:
    """What the command line says."""

    b: str
    a: str = MAIN
    share: float = 10.0
    """Percent of the sessions that go to B, or are copied to it."""
    by: SplitBy = SplitBy.SESSION
    shadow: bool = False
    ttft: float | None = None
    """Seconds; in place of the profile's objective."""
    tpot: float | None = None
    margin: float = USUAL.margin
    guards: Guards = field(default_factory=Guards)


def split_of(request: AbRequest, split_id: str, salt: str, objectives: Mapping[str, float | None]) -> Split:
    """The split; ``objectives`` are the profile's."""
    experiment = Experiment(
        request.a,
        request.b,
        ttft=objectives.get("ttft") if request.ttft is None else request.ttft,
        tpot=objectives.get("tpot") if request.tpot is None else request.tpot,
        margin=request.margin,
        guards=request.guards,
    )
    if request.shadow:
        return Split(
            *(split_id, {request.a: 100.0}, request.by, salt),
            shadow=request.b,
            shadow_percent=request.share,
            experiment=experiment,
        )
    shares = {request.a: 100 - request.share, request.b: request.share}
    return Split(split_id, shares, request.by, salt, experiment=experiment)


def faults(split: Split, config: ProxyConfig) -> Iterator[str]:
    """Why a proxy with this configuration cannot do it, each with the fix."""
    if config.discovery is not None:
        yield (
            "experiments are for a deployment on one machine, as pools are: in a cluster, install one release for "
            "each arm and compare them with `launcher compare`"
        )
        return
    if config.split is not None:
        what = "an experiment runs" if config.split.experiment is not None else "requests are divided already"
        fix = (
            "end it with `launcher ab stop`"
            if config.split.experiment is not None
            else "end what does it, then take it away with `launcher ab stop`"
        )
        yield f"{what}: {config.split.id}: {fix}"
        return
    pools = dict.fromkeys(instance.pool for instance in config.topology.instances if instance.pool)
    if not pools:
        yield "the deployment has one pool only: give the profile another one below `pools` (docs/pools.md)"
        return
    yield from (why for _, why in split_faults(split, pools))
    rules = config.settings.pools.rules
    if rules and rules[-1].when.is_empty:
        yield (
            f"the last rule of proxy.pools sends all requests to {rules[-1].pool}, so that none is left to divide: "
            "take that rule out of the profile and start it anew"
        )
    if split.by is SplitBy.CLIENT and not config.settings.client_keys:
        yield "the proxy knows no clients: give them keys (proxy.client_keys), or divide --by session or request"
    experiment = split.experiment
    assert experiment is not None
    least = 100 * experiment.minimum_buckets / BUCKETS
    smallest = split.shadow_percent if split.shadow is not None else min(split.shares.values())
    if smallest < least:
        yield (
            f"{smallest:g} percent are fewer buckets than a verdict needs ({experiment.minimum_buckets} of {BUCKETS}): "
            f"give either arm a share of {least:g} at least; twice as much is better, as sessions are not equal"
        )
