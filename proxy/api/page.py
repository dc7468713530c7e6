"""``/ui``: a page for people, made of files that hold no secret; what it shows it asks ``/overview`` for."""

from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

FOLDER = Path(__file__).parents[1] / "ui"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    # Nothing from elsewhere, nothing in line: text of engines or clients that got into the page could do nothing.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def page_routes() -> APIRouter:
    """The page and its parts, which are read once."""
    router = APIRouter()
    files = {file.name: file.read_bytes() for file in FOLDER.iterdir() if file.suffix in _TYPES}
    tags = {name: f'"{sha256(content).hexdigest()[:32]}"' for name, content in files.items()}

    @router.api_route("/ui", methods=["GET", "HEAD"], response_model=None)
    async def without_slash() -> Response:
        return RedirectResponse("ui/")  # relative, for whoever serves the proxy below a path

    @router.api_route("/ui/", methods=["GET", "HEAD"], response_model=None)
    @router.api_route("/ui/{name}", methods=["GET", "HEAD"], response_model=None)
    async def part(request: Request, name: str = "index.html") -> Response:
        if name not in files:
            raise HTTPException(404)
        headers = {**_HEADERS, "etag": tags[name], "content-type": _TYPES[Path(name).suffix]}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(status_code=304, headers=headers)
        return Response(files[name], headers=headers)

    return router
