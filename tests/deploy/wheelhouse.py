"""Tiny wheels on disk, and an HTTP server that serves them like a package index or a hub, with scripted faults."""

from __future__ import annotations

import hashlib
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def build_wheel(folder: Path, name: str, version: str, members: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    path = folder / f"{module}-{version}-py3-none-any.whl"
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for member, data in {**members, **texts}.items():
            archive.writestr(member, data)
        archive.writestr(f"{info}/RECORD", "".join(f"{member},,\n" for member in (*members, *texts)))
    return path


@dataclass
class Site:
    """What the server serves, and how it misbehaves. `cuts`: after how many body bytes each next answer breaks off."""

    files: dict[str, bytes] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    wrong: dict[str, list[bytes]] = field(default_factory=dict)  # bodies served first, in place of the right one
    statuses: list[int] = field(default_factory=list)  # served first, in place of an answer
    ranges: bool = True
    login: str | None = None  # the Authorization header that is demanded
    requests: list[tuple[str, str | None]] = field(default_factory=list)  # path, Range
    url: str = ""

    def add_wheel(self, wheel: Path) -> str:
        """Serve `wheel`, and the index page that pip reads; returns its URL."""
        project = re.sub(r"[-_.]+", "-", wheel.name.split("-")[0]).lower()
        data = wheel.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"/files/{wheel.name}"] = data
        page = f'<html><body><a href="/files/{wheel.name}#sha256={digest}">{wheel.name}</a></body></html>'
        self.files[f"/simple/{project}/"] = page.encode()
        return f"{self.url}/files/{wheel.name}"

    @property
    def file_requests(self) -> list[tuple[str, str | None]]:
        return [request for request in self.requests if not request[0].startswith("/simple")]


class _Request(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        site = self.site
        wanted = self.headers.get("Range")
        site.requests.append((self.path, wanted))
        if site.login is not None and self.headers.get("Authorization") != site.login:
            self.send_error(401)
            return
        if site.statuses:
            self.send_error(site.statuses.pop(0))
            return
        if self.path not in site.files:
            self.send_error(404)
            return
        data = site.wrong[self.path].pop(0) if site.wrong.get(self.path) else site.files[self.path]
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and site.ranges else 0
        if start >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if wanted and site.ranges else 200)
        if wanted and site.ranges:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        body = data[start:]
        cut = not self.path.startswith("/simple") and bool(site.cuts)
        self.wfile.write(body[: site.cuts.pop(0)] if cut else body)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class names it)
        pass


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Request", (_Request,), {"site": site}))
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
