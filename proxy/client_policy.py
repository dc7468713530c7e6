"""Decision: the failure policy of one request, which a client may choose where the deployment lets it."""

from proxy.errors import PolicyNotAllowed
from proxy.settings import FailurePolicy, Settings

HEADER = b"x-duet-failure-policy"


def policy_of(asked: str | None, settings: Settings) -> FailurePolicy:
    """From the header's value, if it was sent; raises :class:`PolicyNotAllowed`."""
    if asked is None or asked == settings.failure_policy:
        return settings.failure_policy
    allowed = {settings.failure_policy.value, *settings.client_policies}
    if asked not in allowed:
        raise PolicyNotAllowed(
            f"X-Duet-Failure-Policy: {asked[:32]!r} is not allowed here; allowed: {', '.join(sorted(allowed))}."
        )
    return FailurePolicy(asked)
