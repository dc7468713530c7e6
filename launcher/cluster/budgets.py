"""Decision: how long things may take in a cluster, all from the plan. Seconds."""

import math
from dataclasses import dataclass

from launcher.plan import EngineInstance, Plan
from proxy.settings import Settings
from proxy.topology import Role

LOOK = 5
"""Between two looks at an engine that starts."""
ENGINE_END = 30
"""An engine needs after SIGTERM; vLLM 0.32 takes about 10 s on a CPU."""
MARGIN = 60
"""For what happens around: scheduling, volumes, endpoints."""
PROXY_END = 15
"""The proxy needs besides its drain: to be taken out of the Service before, for last words after."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """Of one engine's pods."""

    looks: int
    """At an engine that starts, before it is killed."""
    drain: int
    """Until nothing runs on a pod that is to end."""
    grace: int
    """Until a pod that is to end is killed."""
    progress: int
    """Until a rollout that does not go on is said to have failed."""


def of(engine: EngineInstance, plan: Plan, settings: Settings) -> Budgets:
    """A request may run as long as the proxy lets it; prefill stays for as long as its KV may be waited for, too."""
    drain = math.ceil(settings.timeouts.whole_answer) + (plan.kv_lease if engine.role is Role.PREFILL else 0)
    grace = drain + ENGINE_END
    return Budgets(
        looks=math.ceil(plan.startup_timeout / LOOK),
        drain=drain,
        grace=grace,
        progress=plan.startup_timeout + grace + MARGIN,
    )
