"""Do the rules that choose pools do what they seem to?"""

from collections.abc import Iterator

from launcher.command_line import options_of
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from proxy.pools import MAIN


def _models(case: Case) -> Iterator[Fault]:
    """Rules for models that nobody serves."""
    model = case.profile.model
    adapters = () if model.lora is None else model.lora.adapters
    served = dict.fromkeys((case.plan.served_name, *model.aliases, *adapters))
    for number, rule in enumerate(case.profile.proxy.pools.rules):
        for name in rule.when.models:
            if name not in served:
                yield Fault(
                    f"proxy.pools.rules.{number}.when.models",
                    f"no model {name} is served, so no request that asks for it is answered",
                    f"choose among {', '.join(served)}, or add it to model.aliases",
                )


def _unused(case: Case) -> Iterator[Fault]:
    """Pools that no rule names."""
    named = {rule.pool for rule in case.profile.proxy.pools.rules}
    for pool in case.profile.pools:
        if pool not in named:
            yield Fault(
                f"pools.{pool}",
                f"no rule of proxy.pools.rules names it: it gets requests only while {MAIN} cannot serve",
                "add a rule, or take the pool away",
                severity=Severity.WARNING,
            )


def _too_long(case: Case) -> Iterator[Fault]:
    """Rules for prompts that are longer than what the pool takes."""
    longest = {pool or MAIN: _longest(each) for pool, each in case.by_pool().items()}
    for number, rule in enumerate(case.profile.proxy.pools.rules):
        least = rule.when.prompt_tokens.min if rule.when.prompt_tokens else None
        most = longest.get(rule.pool)
        if least is not None and most is not None and least >= most:
            yield Fault(
                f"proxy.pools.rules.{number}.when.prompt_tokens.min",
                f"prompts of {least} tokens or more go to {rule.pool}, where prompt and answer have {most} at most",
                "lower it, choose another pool, or raise model.max_model_len there",
                "engines would refuse them",
            )


def _longest(case: Case) -> int | None:
    told = options_of(case.plan.engines[0].argv).get("max-model-len", "")
    return int(told) if told.isdecimal() else None


RULES = (
    Rule("pools/models-of-rules", Layer.STATIC, "the proxy's own rules", _models, of_all_pools=True),
    Rule("pools/without-rule", Layer.STATIC, "the proxy's own rules", _unused, of_all_pools=True),
    Rule("pools/too-long", Layer.STATIC, "vLLM refuses what is longer", _too_long, of_all_pools=True),
)
