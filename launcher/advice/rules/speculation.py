"""Several tokens per step of the engine."""

from launcher.advice import thresholds as at
from launcher.advice.condition import among, at_least, below, is_
from launcher.advice.facts import DRAFTS, LOOKUPS
from launcher.advice.rule import Rule, Technique, Verdict

_BOTH = (Technique.NGRAM, Technique.DRAFT)
_LOOKUPS = among("speculation", *LOOKUPS)
_DRAFTS = among("speculation", *DRAFTS, "other")

RULES = (
    Rule(
        "speculation/tokens-are-fast-enough",
        _BOTH,
        Verdict.NO,
        (is_("tokens_slow", False),),
        "tokens come fast enough; speculation shortens neither the wait for the first one nor a queue",
        "how speculation works",
        "tokens that come too slowly",
        of_need=True,
    ),
    Rule(
        "speculation/high-load",
        _BOTH,
        Verdict.NO,
        (at_least("batch", at.HIGH_LOAD),),
        "an instance generates for {batch} at a time; from about {high_load} on, checking drafts costs more than "
        "it saves",
        at.HIGH_LOAD.source,
        "fewer requests per instance, e.g. more replicas",
    ),
    Rule(
        "speculation/high-temperature",
        _BOTH,
        Verdict.NO,
        (at_least("temperature", at.HOT),),
        "at temperature {temperature} drafts are seldom what is sampled (high: {hot} and more)",
        at.HOT.source,
        "a lower temperature, or requests of low temperature on instances of their own",
    ),
    Rule(
        "speculation/min-p-or-logit-bias",
        _BOTH,
        Verdict.NO,
        (is_("min_p_or_logit_bias", True),),
        "requests use min_p or logit_bias, which vLLM 0.32 refuses with speculation: they would get 400",
        "vLLM 0.32's sampling parameters",
        "clients that send neither",
    ),
    Rule(
        "speculation/short-answers",
        _BOTH,
        Verdict.NO,
        (below("output_tokens_p95", at.SHORT_ANSWER),),
        "95 % of answers have at most {output_tokens_p95}: there is little to speed up (fewer than {short_answer})",
        at.SHORT_ANSWER.source,
        "longer answers",
    ),
    Rule(
        "speculation/ngram-of-unpredictable-output",
        (Technique.NGRAM,),
        Verdict.NO,
        (is_("predictable", False),),
        "the output is not predictable: little of the prompt comes back in it",
        "n-grams are looked up in the prompt",
        "code, translation, summaries, or another task that repeats its input",
    ),
    Rule(
        "speculation/ngram-accepted-too-seldom",
        (Technique.NGRAM,),
        Verdict.NO,
        (_LOOKUPS, below("acceptance", at.ACCEPTANCE)),
        "only {acceptance} of the drafts of {speculation} are accepted (less than {acceptance_needed}): switch it off, "
        "or try a draft model",
        at.ACCEPTANCE.source,
        "output that repeats its input",
    ),
    Rule(
        "speculation/draft-accepted-too-seldom",
        (Technique.DRAFT,),
        Verdict.NO,
        (_DRAFTS, below("acceptance", at.ACCEPTANCE)),
        "only {acceptance} of the drafts of {speculation} are accepted (less than {acceptance_needed}): switch it off, "
        "or take a draft that was trained for this model",
        at.ACCEPTANCE.source,
        "another draft, or a lower temperature",
    ),
    Rule(
        "speculation/no-room-for-a-draft",
        (Technique.DRAFT,),
        Verdict.NO,
        (is_("draft_fits", False),),
        "there is no memory for a draft beside the model and its KV cache; n-grams need none",
        "a draft that does not fit is the commonest failure of speculation",
        "memory: quantization first",
        of_need=True,
    ),
    Rule(
        "speculation/ngram-beside-a-draft",
        (Technique.NGRAM,),
        Verdict.NO,
        (_DRAFTS,),
        "an engine has one method, and {speculation} is in use",
        "vLLM 0.32's speculative configuration",
        "giving the draft up",
    ),
    Rule(
        "speculation/some-load",
        _BOTH,
        Verdict.FIRST_MEASURE,
        (at_least("batch", at.SOME_LOAD), below("batch", at.HIGH_LOAD)),
        "an instance generates for {batch} at a time: somewhere between {some_load} and {high_load} the gain turns "
        "into a loss",
        at.HIGH_LOAD.source,
    ),
    Rule(
        "speculation/draft-of-unpredictable-output",
        (Technique.DRAFT,),
        Verdict.FIRST_MEASURE,
        (is_("predictable", False),),
        "the output is not predictable, so fewer drafts will be accepted than in published figures",
        "acceptance depends on the task",
    ),
    Rule(
        "speculation/draft-takes-memory",
        (Technique.DRAFT,),
        Verdict.FIRST_MEASURE,
        (_DRAFTS, is_("memory_short", True)),
        "memory is short, and {speculation} takes part of it: without, more requests would fit",
        "a draft's weights and KV cache are memory of the engine",
    ),
    Rule(
        "speculation/draft-in-place-of-ngram",
        (Technique.DRAFT,),
        Verdict.FIRST_MEASURE,
        (_LOOKUPS, is_("tokens_slow", True)),
        "tokens are too slow with {speculation}: a draft is accepted more often, but costs memory and time",
        "claimed acceptance: 70 to 85 %",
    ),
    Rule(
        "speculation/keep-ngram",
        (Technique.NGRAM,),
        Verdict.YES,
        (_LOOKUPS, at_least("acceptance", at.ACCEPTANCE), below("batch", at.SOME_LOAD)),
        "it is in use and {acceptance} of its drafts are accepted at {batch}: keep it",
        at.ACCEPTANCE.source,
    ),
    Rule(
        "speculation/keep-the-draft",
        (Technique.DRAFT,),
        Verdict.YES,
        (_DRAFTS, at_least("acceptance", at.ACCEPTANCE), below("batch", at.SOME_LOAD)),
        "it is in use and {acceptance} of its drafts are accepted at {batch}: keep it",
        at.ACCEPTANCE.source,
    ),
    Rule(
        "speculation/ngram-of-predictable-output",
        (Technique.NGRAM,),
        Verdict.YES,
        (is_("tokens_slow", True), is_("predictable", True), is_("speculation", "none")),
        "tokens come too slowly, and the output is predictable: much of it stands in the prompt already",
        "how prompt lookup works",
    ),
    Rule(
        "speculation/draft-for-speed",
        (Technique.DRAFT,),
        Verdict.YES,
        (is_("tokens_slow", True), is_("draft_fits", True), is_("speculation", "none")),
        "tokens come too slowly, and there is memory for a draft",
        "measured in vLLM: 33.8 -> 56.4 tokens/s at batch 1",
    ),
)
