"""Addresses that a user writes, checked where they enter. Pure."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Collection
from urllib.parse import SplitResult

from wire.strict import Invalid

HTTP = ("http", "https")
MAX_HOST = 253  # RFC 1035, 2.3.4, without the root
MAX_ECHO = 80

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE | re.ASCII)  # RFC 1123, 2.1, and _ of DNS


def is_host(host: str) -> bool:
    """Is it an IP address, or could it be a name?"""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        labels = host.removesuffix(".").split(".")
        return len(host) <= MAX_HOST and all(map(_LABEL.fullmatch, labels))
    return host.isascii() and host.isprintable()  # what follows % in an IPv6 address is not looked at


def split_url(url: str, schemes: Collection[str]) -> SplitResult:
    """A URL without user, query and fragment.

    Raises: ValueError with the problem.
    """
    shown = f"{url!r:.{MAX_ECHO}}"
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"an address holds printable ASCII without spaces: {shown}")
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"no address: {error}: {shown}") from None
    if parts.scheme not in schemes:
        raise ValueError(f"must start with {' or '.join(f'{scheme}://' for scheme in schemes)}: {shown}")
    if not is_host(parts.hostname or ""):
        raise ValueError(f"no address of a host: {shown}")
    if port == 0:
        raise ValueError(f"there is no port 0: {shown}")
    if "@" in parts.netloc:
        raise ValueError(f"a user in an address is not sent: {parts.scheme}://{parts.netloc.rpartition('@')[2]}")
    if "?" in url or "#" in url:
        raise ValueError(f"an address ends before ? and #: {shown}")
    return parts


def require_http(key: str, url: str) -> None:
    """For `__post_init__`: the base URL of a service at the dataclass's `key`.

    Raises: Invalid.
    """
    try:
        split_url(url, HTTP)
    except ValueError as error:
        raise Invalid(key, str(error)) from None
