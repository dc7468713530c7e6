"""Decision: which side serves which block, and with which requests."""

from launcher.measure.compare_shape import Side


def order(pairs: int) -> tuple[Side, ...]:
    """A B B A A B B A...: neither a steady drift of the machine nor who comes first favours a side."""
    there, back = (Side.A, Side.B), (Side.B, Side.A)
    return tuple(side for number in range(pairs) for side in (back if number % 2 else there))


def pair_of(number: int) -> int:
    """Of the block with this number, from 0."""
    return number // 2
