"""Shape: a request's body that is sent on while it still comes."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Upload:
    """Can be sent once; who has begun to read it cannot give it to another server."""

    parts: AsyncGenerator[bytes, None]
    """What it raises ends the sending."""
    length: int | None
    """Bytes; ``None`` when it is known only at the end."""
