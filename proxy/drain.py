"""Live state: whether the proxy is being stopped."""


class Drain:
    """Open until it is closed; then no new work is taken, and what runs is finished."""

    def __init__(self) -> None:
        self.closed = False
        """Whether new work is refused."""

    def close(self) -> None:
        """Take no new work from now on."""
        self.closed = True
