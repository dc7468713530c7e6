"""Decision: how soon the cluster is asked again."""

FIRST, BRISK, LONGEST = 0.2, 1.0, 10.0
"""Seconds."""


def pause_after(pause: float, lasted: float, *, seen: bool) -> float:
    """How long to wait at most after a round of so many seconds, ``pause`` after the one before.

    ``seen``: it told what there is. A server that answers is asked often, since nothing else tells of changes; but not
    all the time, should somebody on the way end every watch at once.
    """
    if not seen:
        return min(LONGEST, 2 * pause)
    return FIRST if lasted >= BRISK else min(BRISK, 2 * pause)
