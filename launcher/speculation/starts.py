"""Decision: in which order a deployment is started with what, so that a drift of the machine favours no setting."""

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from launcher.speculation.setting import OFF, Cell, Setting, Start


def sweep(
    number: int, settings: Iterable[Setting], cells: Mapping[Setting, Sequence[Cell]], seed: int
) -> tuple[Start, ...]:
    """K 0 first and last, the others between in an order by chance; so are the loads of each start.

    ``cells``: of each setting; those of K 0 are the ones of all.
    """
    chance = Random(f"{seed}/{number}")
    others = [each for each in settings if each.k]
    chance.shuffle(others)
    every = [*dict.fromkeys(cell for each in others for cell in cells[each])]
    ordered = [(OFF, every), *((each, [*cells[each]]) for each in others), (OFF, every)]
    return tuple(
        Start(f"sweep {number}", position, setting, _shuffled(mine, chance))
        for position, (setting, mine) in enumerate(ordered)
    )


def confirm(
    attempt: int, scheduled: Setting, fixed: Setting, cells: Sequence[Cell], seed: int, visit: int = 0
) -> tuple[Start, ...]:
    """The schedule, K 0 and the best fixed K, there and back again; ``visit`` counts such rounds from 0."""
    chance = Random(f"{seed}/confirm {attempt}/{visit}")
    there = [*dict.fromkeys((scheduled, OFF, fixed))]
    both = [*there, *reversed(there)]
    return tuple(
        Start(f"confirm {attempt}", visit * len(both) + position, setting, _shuffled(cells, chance))
        for position, setting in enumerate(both)
    )


def _shuffled(cells: Sequence[Cell], chance: Random) -> tuple[Cell, ...]:
    mine = [*cells]
    chance.shuffle(mine)
    return tuple(mine)
