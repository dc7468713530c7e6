"""What a request asks for."""

from starlette.types import Scope


def target_of(scope: Scope) -> str:
    """The path and the query as the client wrote them."""
    query = scope["query_string"].decode("latin-1")
    path: str = scope["raw_path"].decode("latin-1")
    return f"{path}?{query}" if query else path
