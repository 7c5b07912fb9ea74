"""The console page: static files, read once, each with headers that allow the page nothing it does not need.

No file leaves a browser a reason to ask another host, and the Content-Security-Policy forbids it. Files are
revalidated by ETag at each load, so a new version of the server is a new page; what carries its version in its name is
kept for good.
"""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI, Request, Response

from wire.errors import PeerError

FOLDER = Path(__file__).parent / "page"
PREFIX = "/console"
PUBLIC = ("/", f"{PREFIX}/*")  # without the API key: the page asks for it
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "permissions-policy": "microphone=(self), camera=(), geolocation=(), display-capture=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
REVALIDATE = "no-cache"
KEEP = "public, max-age=31536000, immutable"  # RFC 8246; a year, the most RFC 9111 caches are asked for


@dataclass(frozen=True)
class Asset:
    body: bytes
    media_type: str
    etag: str
    cache_control: str


def read_page(folder: Path = FOLDER) -> dict[str, Asset]:
    """Files of the page by their name below `PREFIX`."""
    return {
        path.relative_to(folder).as_posix(): _read(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def add_to(app: FastAPI) -> None:
    assets = read_page()

    @app.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return _answer(request, assets["index.html"])

    @app.api_route(PREFIX + "/{name:path}", methods=["GET", "HEAD"])
    async def asset(name: str, request: Request) -> Response:
        if name not in assets:
            raise PeerError("the console has no such file", code="not_found", http_status=404)
        return _answer(request, assets[name])


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    media_type = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/plain"
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Asset(body, media_type, etag, KEEP if path.parent.name == "vendor" else REVALIDATE)


def _answer(request: Request, asset: Asset) -> Response:
    headers = {**HEADERS, "etag": asset.etag, "cache-control": asset.cache_control}
    known = request.headers.get("if-none-match", "")
    if asset.etag in (tag.strip().removeprefix("W/") for tag in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(asset.body, headers=headers, media_type=asset.media_type)
