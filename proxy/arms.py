"""Decision: the bucket of a request, and the arm of a bucket."""

from collections.abc import Iterable
from hashlib import sha256

from proxy.completion import Completion
from proxy.headers import value_of
from proxy.pools import MAIN
from proxy.prompt import session_of
from proxy.split import BUCKETS, Split, SplitBy

Headers = Iterable[tuple[bytes, bytes]]


def bucket_of(salt: str, key: str) -> int:
    """The same for the same key, whichever process asks."""
    return int.from_bytes(sha256(f"{salt}\0{key}".encode(errors="surrogatepass")).digest()[:8]) % BUCKETS


class Arms:
    """Which buckets are whose, by the shares of a split."""

    def __init__(self, split: Split) -> None:
        self._ends: list[tuple[int, str]] = []
        total = 0.0
        for arm in _side_by_side(split):
            total += split.shares[arm]
            self._ends.append((round(total * BUCKETS / 100), arm))
        self._copied = round(split.shadow_percent * BUCKETS / 100) if split.shadow is not None else 0

    def of(self, bucket: int) -> str:
        """The arm of a bucket."""
        return next((arm for end, arm in self._ends if bucket < end), self._ends[-1][1])

    def copies(self, bucket: int) -> bool:
        """Whether the shadow gets copies of a bucket's requests."""
        return bucket < self._copied


def _side_by_side(split: Split) -> list[str]:
    """In an order that does not depend on the shares; main is second, so that each of two others grows from an end."""
    others = sorted(arm for arm in split.shares if arm != MAIN)
    return [*others[:1], *([MAIN] if MAIN in split.shares else []), *others[1:]]


def key_of(
    by: SplitBy, completion: Completion, headers: Headers, *, session_header: bytes, client: str | None, request: str
) -> str:
    """Who asks, as far as the split looks at it; ``request`` is a name that no other request has."""
    if by is SplitBy.SESSION:
        session = session_of(completion, value_of(headers, session_header))
        if session is not None:
            return f"session {session}"
    if by is not SplitBy.REQUEST and client is not None:
        return f"client {client}"
    return f"request {request}"
