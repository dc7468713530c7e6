"""Decision: which part of the last minute's prompt tokens came to an instance as KV from another one."""

from collections import deque

_WINDOW = 60.0


class Share:
    """Of one instance; times are seconds of one clock."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float, float]] = deque()

    def see(self, now: float, received: float | None, prompt_tokens: float) -> None:
        """Its counters at this time; smaller ones than before are those of another process."""
        if received is None:
            return
        if self._seen and prompt_tokens < self._seen[-1][2]:
            self._seen.clear()
        self._seen.append((now, received, prompt_tokens))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW:
            self._seen.popleft()

    @property
    def value(self) -> float | None:
        """From 0 to 1; ``None`` when there were no prompts."""
        if not self._seen:
            return None
        _, received, tokens = self._seen[0]
        _, received_now, tokens_now = self._seen[-1]
        return (received_now - received) / (tokens_now - tokens) if tokens_now > tokens else None
