"""One URL into one file, continued where a broken transfer stopped, compared with its SHA-256 before it gets its name.

A transfer that broke is taken up again with a Range request (RFC 9110, 14.2) for as long as each attempt brings new
bytes; an attempt that brings none is repeated once. Bytes that arrive whole but wrong are fetched once more from the
start. `.part` files survive the process, so the next run continues them.

Proxies come from the environment as urllib reads them, certificates from SSL_CERT_FILE, SSL_CERT_DIR and PIP_CERT.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import http.client
import logging
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from deploy.errors import FetchError
from deploy.progress import Progress

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 18
STALL_TIMEOUT_S = 30.0  # no byte for so long: the attempt has failed
RETRY_WAIT_S = 3.0
NUM_ATTEMPTS_WITHOUT_BYTES = 2
NUM_FETCHES_OF_WRONG_BYTES = 2


@dataclass(frozen=True)
class Remote:
    """`credentials` are `user:password` for this URL's host; they are sent there only, and never shown."""

    url: str
    sha256: str | None = None
    credentials: str | None = None


def fetch(remote: Remote, target: Path, *, label: str, progress: Progress, retry_wait_s: float = RETRY_WAIT_S) -> None:
    """Fill `target` with the bytes of `remote`, or raise: FetchError."""
    part = target.with_name(target.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(NUM_FETCHES_OF_WRONG_BYTES):
        _fetch_part(remote, part, label, progress, retry_wait_s)
        if remote.sha256 is None or sha256_of(part) == remote.sha256:
            part.replace(target)
            return
        part.unlink()
        logger.warning("%s: the bytes from %s are not the promised ones (SHA-256 differs)", label, shown(remote.url))
    raise FetchError(
        f"{label}: {shown(remote.url)} delivers wrong bytes (SHA-256 differs, {NUM_FETCHES_OF_WRONG_BYTES} times)",
        "a proxy or mirror between here and the source may alter files; try another index or network",
    )


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def shown(url: str) -> str:
    """`url` as it may be printed: without user, password, query and fragment."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _fetch_part(remote: Remote, part: Path, label: str, progress: Progress, retry_wait_s: float) -> None:
    failures = 0
    while True:
        before_bytes = _size(part)
        try:
            _attempt(remote, part, label, progress)
            return
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
                raise FetchError(f"{label}: cannot write {part}: {error.strerror}") from None
            failures = 1 if _size(part) > before_bytes else failures + 1
            problem = _problem(error)
            if failures >= NUM_ATTEMPTS_WITHOUT_BYTES:
                raise FetchError(
                    f"{label}: cannot fetch {shown(remote.url)}: {problem}",
                    "check the network, proxy and index settings; a second run continues where this one stopped",
                ) from None
            logger.warning("%s: %s; trying again in %.0f s", label, problem, retry_wait_s)
            time.sleep(retry_wait_s)


def _attempt(remote: Remote, part: Path, label: str, progress: Progress) -> None:
    """One request for what is missing.

    Raises: OSError or HTTPException when it breaks; what arrived until then is kept in `part`.
    """
    have_bytes = _size(part)
    try:
        response = _open(remote, have_bytes)
    except urllib.error.HTTPError as error:
        with error:
            if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE or not have_bytes:
                raise
            # Nothing lies beyond our last byte: either we have it all, or the file has changed.
            if error.headers.get("Content-Range") == f"bytes */{have_bytes}":
                return
        part.unlink()
        have_bytes, response = 0, _open(remote, 0)
    with response:
        start_bytes, total_bytes = _extent(response, have_bytes)
        with part.open("r+b" if start_bytes else "wb") as file, progress.transfer(label, total_bytes) as moved:
            file.seek(start_bytes)
            arrived_bytes = start_bytes
            while chunk := response.read(CHUNK_BYTES):
                file.write(chunk)
                arrived_bytes += len(chunk)
                moved(arrived_bytes)
    if total_bytes is not None and arrived_bytes != total_bytes:
        raise ConnectionError(f"the connection ended after {arrived_bytes} of {total_bytes} bytes")


def _open(remote: Remote, start_bytes: int) -> http.client.HTTPResponse:
    request = urllib.request.Request(remote.url, headers={"Accept-Encoding": "identity", "User-Agent": "offhook"})
    if start_bytes:
        request.add_header("Range", f"bytes={start_bytes}-")
    if remote.credentials is not None:
        token = base64.b64encode(remote.credentials.encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    tls = [urllib.request.HTTPSHandler(context=_tls())] if remote.url.startswith("https:") else []
    opener = urllib.request.build_opener(*tls)
    response: http.client.HTTPResponse = opener.open(request, timeout=STALL_TIMEOUT_S)
    return response


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    if bundle := os.environ.get("PIP_CERT"):
        context.load_verify_locations(bundle)
    return context


def _extent(response: http.client.HTTPResponse, asked_bytes: int) -> tuple[int, int | None]:
    """Where the body starts in the file, and how long the whole file is; a server may ignore our Range."""
    length = response.headers.get("Content-Length")
    if response.status != http.client.PARTIAL_CONTENT:
        return 0, int(length) if length else None
    unit, _, extent = response.headers.get("Content-Range", "").partition(" ")
    span, _, total = extent.partition("/")
    if unit != "bytes" or span.partition("-")[0] != str(asked_bytes):
        raise http.client.HTTPException(f"asked for bytes from {asked_bytes}, got '{unit} {extent}'")
    return asked_bytes, int(total) if total.isdecimal() else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _problem(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
