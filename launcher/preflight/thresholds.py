"""Will what the profile says of skipping prefill do what it says? Nothing here keeps a deployment from starting."""

from collections.abc import Iterator

from launcher.plan import Plan
from launcher.preflight.checkpoint import read_config
from launcher.profile import Profile
from proxy.settings import ConditionalPD, Policy


def remarks(profile: Profile, plan: Plan) -> Iterator[str]:
    """Settings of the proxy that can never apply, or that leave nothing for prefill to do."""
    pd, selection = profile.proxy.pd, profile.proxy.selection
    if profile.roles.prefill is None:
        if pd != ConditionalPD():
            yield "proxy.pd has no effect: there is no role prefill that a request could skip"
        if selection.prefill is not Policy.LEAST_IN_FLIGHT:
            yield f"proxy.selection.prefill: {selection.prefill} has no effect: there is no role prefill"
        return
    longest = profile.model.max_model_len or read_config(plan.model).get("max_position_embeddings")
    for key in ("shorter_than", "uncached_shorter_than"):
        tokens = getattr(pd, key)
        if tokens is not None and isinstance(longest, int) and tokens >= longest:
            yield (
                f"proxy.pd.{key}: {tokens} turns PD off for every request, since prompt and answer together have at "
                f"most {longest} tokens (model.max_model_len): lower it, or use the role aggregated"
            )
