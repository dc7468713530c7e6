"""What a request asks for."""

from starlette.requests import Request


def target_of(request: Request) -> str:
    """The path and the query as the client wrote them."""
    query = request.scope["query_string"].decode("latin-1")
    path: str = request.scope["raw_path"].decode("latin-1")
    return f"{path}?{query}" if query else path
