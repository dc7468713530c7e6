"""Decision: the shipped profile from which a technique is begun."""

import shlex
from dataclasses import dataclass

from launcher.advice.advice import Start
from launcher.advice.condition import Condition, at_least, holds, is_
from launcher.advice.rule import Technique
from launcher.advice.situation import Situation
from launcher.advice.thresholds import Threshold

_FOUR = Threshold("four_devices", 4.0, "the profile's plan")
_WITHOUT_SPECULATION = "speculation=null"
_ON_A_CPU = (is_("device", "cpu"),)
_WEIGHTS_AND_DRAFTS = (Technique.FP8, Technique.INT8, Technique.INT4, Technique.NGRAM, Technique.DRAFT)
_AGGREGATED = (
    "roles.prefill=null",
    "roles.decode=null",
    "roles.aggregated={kv_cache_memory: 1GiB, enforce_eager: true}",
)
_ONLINE_FP8 = ("quantization.checkpoint_scheme=null", "quantization.weights=fp8_per_tensor")


@dataclass(frozen=True, slots=True)
class _Candidate:
    techniques: tuple[Technique, ...]
    when: tuple[Condition, ...]
    start: Start


def _candidate(
    profile: str,
    *techniques: Technique,
    because: str,
    when: tuple[Condition, ...] = (),
    overrides: tuple[str, ...] = (),
) -> _Candidate:
    return _Candidate(techniques, when, Start(profile, overrides, because))


# The first whose conditions hold.
CANDIDATES = (
    _candidate("demo", Technique.PD, when=_ON_A_CPU, because="the profile for CPUs; give it a model"),
    _candidate("demo", *_WEIGHTS_AND_DRAFTS, when=_ON_A_CPU, overrides=_AGGREGATED,
               because="the profile for CPUs, without its PD; give it a model"),
    _candidate("api-throughput", Technique.PD, when=(at_least("devices", _FOUR),),
               because="INT8 and PD on four devices"),
    _candidate("batch-cost", Technique.PD, because="INT4 and PD on two devices"),
    _candidate("single-gpu", Technique.DRAFT, when=(is_("quantized", "int4"),),
               because="INT4 with a small draft on one device"),
    _candidate("interactive", Technique.DRAFT, because="INT8 with EAGLE-3 on one device"),
    _candidate("interactive", Technique.NGRAM, because="INT8 on one device, n-grams in place of EAGLE-3",
               overrides=("speculation={method: ngram, num_speculative_tokens: 4, draft: null}",)),
    _candidate("single-gpu", Technique.INT4, because="INT4 on one device, its speculation left for the next stage",
               overrides=(_WITHOUT_SPECULATION,)),
    _candidate("interactive", Technique.INT8, because="INT8 on one device, its speculation left for the next stage",
               overrides=(_WITHOUT_SPECULATION,)),
    _candidate("interactive", Technique.FP8, overrides=(_WITHOUT_SPECULATION, *_ONLINE_FP8),
               because="one device; FP8 is made from 16-bit weights while loading, so give it a 16-bit model"),
)  # fmt: skip


def start_for(technique: Technique, situation: Situation) -> Start | None:
    """Where to begin; ``None`` for what needs no other profile."""
    return next(
        (each.start for each in CANDIDATES if technique in each.techniques and holds(each.when, situation)), None
    )


def commands(start: Start) -> tuple[str, ...]:
    """What to type, in this order."""
    arguments = shlex.join([start.profile, *(part for each in start.overrides for part in ("--set", each))])
    return (f"launcher check {arguments}", f"launcher up {arguments}", "launcher advise --window 600")
