"""Shape: every fact that advice can rest on: its unit, the values it may have and the question that asks for it."""

import difflib
import math
from dataclasses import dataclass
from enum import StrEnum

Value = bool | float | str
"""Of a fact: yes or no, a number, or one of a few words."""


LOOKUPS = ("ngram", "ngram_gpu", "suffix")
"""Methods of speculation that need no model: what stood somewhere before is drafted."""
DRAFTS = ("draft_model", "eagle", "eagle3", "medusa", "mlp_speculator", "mtp", "dflash", "dspark")


class AnswerError(ValueError):
    """An answer that cannot be: names the fact, the value and what is allowed."""


class Unit(StrEnum):
    """What a number counts."""

    SECONDS = "s"
    TOKENS = "tokens"
    REQUESTS = "requests"
    SHARE = "share"
    """0 to 1, shown as per cent."""
    GIGABYTES = "GB"
    GIGABYTES_PER_SECOND = "GB/s"
    BYTES = "bytes"
    BILLIONS = "billion parameters"
    DEVICES = "devices"
    TOKENS_PER_SECOND = "tokens/s"
    REQUESTS_PER_SECOND = "requests/s"
    NONE = ""


_PLURALS = frozenset({Unit.TOKENS, Unit.REQUESTS, Unit.BYTES, Unit.DEVICES})
_YES, _NO = frozenset({"yes", "true", "y", "1", "on"}), frozenset({"no", "false", "n", "0", "off"})


@dataclass(frozen=True, slots=True)
class FactKind:
    """One fact. It is a number when it has a unit, one of ``words`` when it has those, and else yes or no."""

    name: str
    what: str
    unit: Unit | None = None
    low: float = 0.0
    high: float = math.inf
    words: tuple[str, ...] = ()
    question: str = ""
    """Asks a person for it; empty when people do not know such things."""
    computed_from: tuple[str, ...] = ()
    """It only follows from these; nobody can answer it."""

    @property
    def allowed(self) -> str:
        """The values it may have, for people."""
        if self.words:
            return ", ".join(self.words)
        if self.unit is None:
            return "yes or no"
        span = f"{self.low:g} or more" if self.high == math.inf else f"{self.low:g} to {self.high:g}"
        kind = "a share" if self.unit is Unit.SHARE else "a number"
        return f"{kind} ({span}{'' if self.unit in (Unit.NONE, Unit.SHARE) else f' {self.unit}'})"

    def checked(self, value: Value) -> Value:
        """The value itself; raises :class:`AnswerError` when the fact cannot have it."""
        if self.words:
            fits = value in self.words
        elif self.unit is None:
            fits = isinstance(value, bool)
        else:
            fits = not isinstance(value, bool | str) and self.low <= value <= self.high and math.isfinite(value)
        if not fits:
            raise AnswerError(f"{self.name}: {value} is not possible, give {self.allowed}")
        return value

    def within(self, value: float) -> float:
        """The nearest number that it may have: a share of two counters that were not read at once can be above 1."""
        return min(max(value, self.low), self.high)

    def parsed(self, text: str) -> Value:
        """What a person wrote; raises :class:`AnswerError`."""
        word = text.strip().lower()
        if self.words:
            return self.checked(word)
        if self.unit is None:
            if word not in _YES | _NO:
                raise AnswerError(f"{self.name}: {text!r} is not possible, give {self.allowed}")
            return word in _YES
        try:
            return self.checked(float(word))
        except (ValueError, OverflowError):
            raise AnswerError(f"{self.name}: {text!r} is not possible, give {self.allowed}") from None

    def show(self, value: Value) -> str:
        """A value with its unit, for people."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str):
            return value
        match self.unit:
            case Unit.SECONDS:
                return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
            case Unit.SHARE:
                return f"{value * 100:.3g} %"
            case Unit.NONE | None:
                return f"{value:.3g}"
            case _:
                unit = self.unit.removesuffix("s") if value == 1 and self.unit in _PLURALS else self.unit
                return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def _seconds(name: str, what: str) -> FactKind:
    return FactKind(name, what, Unit.SECONDS)


_KINDS = (
    # The questions themselves.
    FactKind("memory_short", "memory is short: the model or the KV cache of its requests does not fit",
             question="Is memory the bottleneck (the model or its KV cache does not fit)?"),
    FactKind("ttft_slow", "answers begin too late (TTFT)",
             question="Do single answers begin too late (time to first token)?"),
    FactKind("tokens_slow", "tokens come too slowly once an answer has begun",
             question="Do the tokens of single answers come too slowly, or with stalls?"),
    FactKind("throughput_short", "throughput is short: more requests come than are served in time",
             question="Is throughput the bottleneck (more requests than are served in time)?"),
    FactKind("anything_short", "any of memory, TTFT, speed of tokens and throughput",
             computed_from=("memory_short", "ttft_slow", "tokens_slow", "throughput_short")),
    # Traffic.
    FactKind("requests", "requests that ended in the window", Unit.REQUESTS),
    FactKind("request_rate", "requests that ended per second", Unit.REQUESTS_PER_SECOND),
    FactKind("concurrency", "requests in the system at the same time", Unit.REQUESTS,
             question="How many requests are in the system at the same time?"),
    FactKind("batch", "requests that one instance generates for at the same time", Unit.REQUESTS,
             question="How many of them does one instance (one replica) have?"),
    FactKind("prompt_tokens_p50", "length of the median prompt", Unit.TOKENS),
    FactKind("prompt_tokens_p95", "length that 95 % of prompts do not exceed", Unit.TOKENS,
             question="How many tokens has a long prompt (95 % are no longer)?"),
    FactKind("output_tokens_p50", "length of the median answer", Unit.TOKENS),
    FactKind("output_tokens_p95", "length that 95 % of answers do not exceed", Unit.TOKENS,
             question="How many tokens has a long answer (95 % are no longer)?"),
    FactKind("prefix_hit_rate", "share of prompt tokens found in the prefix cache", Unit.SHARE, high=1.0,
             question="Which share of the prompts' tokens is cached already (0 to 1; long system prompts, chats)?"),
    FactKind("predictable", "the output is predictable: code, translation, summaries",
             question="Is the output predictable (code, translation, summaries)?"),
    FactKind("temperature", "sampling temperature of most requests", Unit.NONE, high=5.0,
             question="At which temperature do most requests sample?"),
    FactKind("min_p_or_logit_bias", "requests use min_p or logit_bias",
             question="Do requests use min_p or logit_bias?"),
    FactKind("exact_work", "mathematics or code: small errors of the model are expensive",
             question="Is it mathematics or code, where small errors are expensive?"),
    # Machine and model.
    FactKind("device", "what engines compute on", words=("cpu", "cuda"),
             question="Do the engines run on cpu or cuda?"),
    FactKind("devices", "devices for this model", Unit.DEVICES, low=1.0, high=100_000.0,
             question="How many devices (GPUs) are there for this model?"),
    FactKind("device_memory", "memory of one device", Unit.GIGABYTES),
    FactKind("compute_capability", "of the CUDA devices: 8.0 is Ampere, 8.9 Ada, 9.0 Hopper, 10.0 Blackwell",
             Unit.NONE, low=1.0, high=99.0,
             question="Which compute capability do the GPUs have (8.0 Ampere, 8.9 Ada, 9.0 Hopper, 10.0 Blackwell)?"),
    FactKind("interconnect", "bandwidth between the devices: NVLink about 300, PCIe 25, 100 Gbit/s 12",
             Unit.GIGABYTES_PER_SECOND),
    FactKind("rdma", "the devices reach each other by NVLink or RDMA",
             question="Do the devices reach each other by NVLink or RDMA (InfiniBand, RoCE)?"),
    FactKind("parameters", "size of the model", Unit.BILLIONS,
             question="How many billion parameters has the model?"),
    FactKind("kv_bytes_per_token", "KV cache of one token", Unit.BYTES),
    FactKind("draft_fits", "memory is left for a draft model",
             question="Is memory left for a draft model beside the model and its KV cache?"),
    # What engines and proxy tell.
    FactKind("kv_cache_usage", "highest share of a KV cache in use", Unit.SHARE, high=1.0),
    FactKind("preempted_share", "preemptions per request", Unit.SHARE),
    FactKind("waiting", "requests that waited in engines, on average", Unit.REQUESTS),
    FactKind("generation_rate", "generated tokens per second", Unit.TOKENS_PER_SECOND),
    _seconds("queue_time_p50", "median wait for an engine to begin"),
    _seconds("queue_time_p95", "wait for an engine to begin that 95 % do not exceed"),
    _seconds("prefill_time_p50", "median time to compute a prompt"),
    _seconds("prefill_time_p95", "time to compute a prompt that 95 % do not exceed"),
    _seconds("ttft_p50", "median time to first token"),
    _seconds("ttft_p95", "time to first token that 95 % do not exceed"),
    _seconds("itl_p50", "median time between two events of a stream"),
    _seconds("itl_p95", "time between two events of a stream that 95 % do not exceed"),
    _seconds("itl_p99", "time between two events of a stream that 99 % do not exceed"),
    FactKind("itl_spread", "time between two events: the 99th percentile over the median", Unit.NONE,
             computed_from=("itl_p99", "itl_p50")),
    _seconds("tpot_p50", "median time per output token of a request"),
    _seconds("tpot_p95", "time per output token of a request that 95 % do not exceed"),
    FactKind("acceptance", "share of draft tokens that were accepted", Unit.SHARE, high=1.0),
    FactKind("acceptance_length", "tokens per step of the engine with speculation", Unit.TOKENS, low=1.0),
    FactKind("pd_share", "share of requests whose prompt prefill computed and handed over", Unit.SHARE, high=1.0),
    _seconds("kv_transfer_time_p50", "median time of a KV transfer"),
    _seconds("kv_transfer_time_p95", "time of a KV transfer that 95 % do not exceed"),
    FactKind("ttft_over", "TTFT p95 over its objective", Unit.NONE, computed_from=("ttft_p95", "ttft_objective")),
    FactKind("queue_share", "wait for an engine to begin over TTFT, both p95", Unit.SHARE,
             computed_from=("queue_time_p95", "ttft_p95")),
    FactKind("tpot_over", "time per output token p95 over its objective", Unit.NONE,
             computed_from=("tpot_p95", "tpot_objective")),
    FactKind("transfer_share", "time to move the median prompt's KV over the time to compute it", Unit.SHARE,
             computed_from=("prefill_time_p50", "prompt_tokens_p50", "kv_bytes_per_token", "interconnect")),
    # The team.
    FactKind("monitoring", "somebody watches the metrics and is alerted",
             question="Do you watch metrics and get alerts for this service?"),
    FactKind("kubernetes", "the team runs Kubernetes, or does not need it: all on one machine",
             question="Do you run Kubernetes in production (or is it all on one machine)?"),
    # What is used now.
    FactKind("quantized", "what the checkpoint, or the engine on loading, is quantized to",
             words=("none", "int8", "int4", "fp8", "other"),
             question="What is the model quantized to?"),
    FactKind("speculation", "the present method",
             words=("none", *LOOKUPS, *DRAFTS, "other"),
             question="Which speculation is used?"),
    FactKind("pd", "prefill and decode are apart already",
             question="Are prefill and decode apart already?"),
    # What is wanted.
    _seconds("ttft_objective", "TTFT that should not be exceeded"),
    _seconds("tpot_objective", "time per output token that should not be exceeded"),
)  # fmt: skip

FACTS = {kind.name: kind for kind in _KINDS}
"""In the order in which they are shown and asked for."""


def parse_answer(text: str) -> tuple[str, Value]:
    """``name=value``; raises :class:`AnswerError`."""
    name, equals, value = text.partition("=")
    kind = FACTS.get(name.strip())
    if not equals or kind is None:
        possible = [each.name for each in FACTS.values() if not each.computed_from]
        close = difflib.get_close_matches(name.strip(), possible, 3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(possible)}"
        raise AnswerError(f"{text!r} is no answer, write NAME=VALUE" if not equals else f"no fact {name!r}; {hint}")
    if kind.computed_from:
        raise AnswerError(f"{kind.name} is computed from {', '.join(kind.computed_from)}: answer those")
    return kind.name, kind.parsed(value)
