"""Decision: how long a trouble may last."""

from collections.abc import Sequence

from launcher.cluster.trouble import Trouble


class Patience:
    """With the troubles of one release; times are seconds on any one clock."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self._told: set[tuple[str, str]] = set()

    def new(self, found: Sequence[Trouble], now: float) -> list[Trouble]:
        """Those of them that were not told yet."""
        keys = {_key(each): each for each in found}
        # What may end by itself is not counted until it may no longer.
        self._since = {key: now if each.patience is None else self._since.get(key, now) for key, each in keys.items()}
        new = [each for key, each in keys.items() if key not in self._told]
        self._told |= keys.keys()
        return new

    def final(self, found: Sequence[Trouble], now: float) -> list[Trouble]:
        """Those that have lasted for so long that waiting longer is of no use."""
        return [each for each in found if each.patience is not None and now - self._since[_key(each)] >= each.patience]


def _key(trouble: Trouble) -> tuple[str, str]:
    """What they say changes, while they last: it counts, or names pods that come and go."""
    return trouble.of, trouble.fix
