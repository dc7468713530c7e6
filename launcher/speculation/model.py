"""Decision: measured points -> how long a step takes and how many tokens it gives, for loads between them.

A step that computes ``b`` requests with ``k`` drafted tokens each takes
``fixed + request * b + (draft + token * b) * k`` seconds: reading weights costs the same for any batch, drafting one
more token costs a pass of the draft, and every token to verify costs a little more the fuller the batch is. It gives
each request one token of its own and those of the draft up to the first that is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from launcher.speculation.evidence import Point

_WORST_FIT = 0.15
"""Mean error of a fit, as a share, above which a model tells nothing."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds."""

    fixed: float
    request: float
    draft: float
    token: float

    def seconds(self, batch: float, k: int) -> float:
        """Of one step."""
        return self.fixed + self.request * batch + (self.draft + self.token * batch) * k


@dataclass(frozen=True, slots=True)
class Model:
    """Of one method on one engine."""

    step: StepTime
    acceptance: float
    """Of a drafted token after which all before it were accepted."""
    error: float
    """Mean error over the points it was fitted to, as a share."""

    def length(self, k: int) -> float:
        """Tokens that one step gives one request."""
        return expected_length(self.acceptance, k)

    def throughput(self, batch: float, k: int) -> float:
        """Output tokens a second of one engine."""
        return batch * self.length(k) / self.step.seconds(batch, k)

    @property
    def is_good(self) -> bool:
        """Whether its numbers may decide between measured ones."""
        return self.error <= _WORST_FIT


def expected_length(acceptance: float, k: int) -> float:
    """Tokens that one step gives: drafted ones up to the first refused one, and the model's own."""
    return sum(acceptance**position for position in range(k + 1))


def fit(points: Sequence[Point], engines: int) -> Model | None:
    """To points of one method and of K 0, measured with so many engines that share the load.

    ``None`` when they are too few to tell the cost of a batch and of drafting apart.
    """
    import numpy as np
    from scipy.optimize import nnls

    usable = [each for each in points if each.throughput.value > 0 and (each.k == 0 or each.acceptance_length)]
    batches = {each.concurrency for each in usable}
    if len(batches) < 2 or len({each.k for each in usable}) < 2 or len(usable) < 4:
        return None
    acceptance = _acceptance([(each.k, each.acceptance_length or 1.0) for each in usable if each.k])
    rows, seconds = [], []
    for each in usable:
        batch = each.concurrency / engines
        length = (each.acceptance_length or 1.0) if each.k else 1.0
        rows.append((1.0, batch, each.k, batch * each.k))
        seconds.append(each.concurrency * length / each.throughput.value)
    table, times = np.asarray(rows), np.asarray(seconds)
    found, _ = nnls(table / times[:, None], np.ones(len(times)))  # errors count as shares, whatever the load
    step = StepTime(*(float(value) for value in found))
    error = float(np.abs(table @ found / times - 1).mean())
    return Model(step, acceptance, error)


def _acceptance(lengths: Sequence[tuple[int, float]]) -> float:
    """The one that explains these lengths best, each with its K."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda share: sum((expected_length(share, k) - length) ** 2 for k, length in lengths),
        bounds=(0.0, 1.0),
        method="bounded",
    )
    return float(found.x)
