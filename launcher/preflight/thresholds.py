"""Will what the profile says of skipping prefill do what it says? Nothing here keeps a deployment from starting."""

from collections.abc import Iterator

from launcher.preflight.checkpoint import config_of
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity
from proxy.settings import ConditionalPD, Policy


def _without_effect(case: Case) -> Iterator[Fault]:
    """Settings for prefill where there is none."""
    if any(each.roles.prefill is not None for each in case.profile.by_pool().values()):
        return
    pd, selection = case.profile.proxy.pd, case.profile.proxy.selection
    nobody = "there is no role prefill"
    if pd != ConditionalPD():
        yield Fault("proxy.pd", f"it has no effect: {nobody} to skip", "remove it", severity=Severity.WARNING)
    if selection.prefill is not Policy.LEAST_IN_FLIGHT:
        what = f"{selection.prefill} has no effect: {nobody}"
        yield Fault("proxy.selection.prefill", what, "remove it", severity=Severity.WARNING)


def _every_request(case: Case) -> Iterator[Fault]:
    """A threshold that turns PD off for every prompt."""
    if case.profile.roles.prefill is None:
        return
    longest = case.profile.model.max_model_len or case.once(config_of).get("max_position_embeddings")
    for key in ("shorter_than", "uncached_shorter_than"):
        tokens = getattr(case.profile.proxy.pd, key)
        if tokens is not None and isinstance(longest, int) and tokens >= longest:
            yield Fault(
                f"proxy.pd.{key}",
                f"{tokens} turns PD off for every request, since prompt and answer together have at most {longest} "
                "tokens (model.max_model_len)",
                "lower it, or use the role aggregated",
                values={f"proxy.pd.{key}": str(tokens), "model.max_model_len": str(longest)},
                severity=Severity.WARNING,
            )


RULES = (
    Rule("proxy/setting-without-effect", Layer.STATIC, "the proxy's own rules", _without_effect, of_all_pools=True),
    Rule("proxy/pd-never-used", Layer.STATIC, "the proxy's own rules", _every_request, of_all_pools=True),
)
