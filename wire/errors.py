"""Errors that cross a process boundary, split by what the caller does about them.

    WireError
    ├── PeerError          the other side broke the protocol: tell it, close
    │   └── Unauthorized   the key is missing or wrong
    ├── Overloaded         refused before the first byte: come back after `retry_after_s`
    ├── DeadlineExceeded   the budget is spent: the turn ends politely
    └── Unavailable        a dependency is gone: the caller may choose another

Each class knows its HTTP status and its WebSocket close code (RFC 6455, 7.4.1; 1012 and 1013 from the IANA
registry), so the mapping exists once.
"""

from __future__ import annotations

from typing import ClassVar


class WireError(Exception):
    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    close_code: ClassVar[int] = 1011


class PeerError(WireError):
    """`code` narrows the default `bad_request`, for example to `unknown_voice`."""

    code = "bad_request"
    http_status = 400
    close_code = 1008

    def __init__(self, message: str, *, code: str | None = None, http_status: int | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code  # type: ignore[misc]
        if http_status is not None:
            self.http_status = http_status  # type: ignore[misc]


class Unauthorized(PeerError):
    code = "unauthorized"
    http_status = 401


class Overloaded(WireError):
    code = "overloaded"
    http_status = 429
    close_code = 1013

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeadlineExceeded(WireError):
    code = "deadline_exceeded"
    http_status = 504


class Unavailable(WireError):
    code = "unavailable"
    http_status = 503
    close_code = 1012
