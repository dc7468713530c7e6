"""Decision: amounts for people."""


def speed(bytes_per_second: float | None) -> str:
    """Of KV that moves; empty where it is not known."""
    return "" if bytes_per_second is None else f"{bytes_per_second / 1e6:,.0f} MB/s"


def duration(seconds: float) -> str:
    """In its two greatest units."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{seconds:02}s"


def ago(when: float | None, now: float) -> str:
    """How long before; both are seconds since the epoch. Empty where it is not known."""
    return "" if when is None else f"{duration(max(0.0, now - when))} ago"
