"""What an HTTP server says when it does not do what it was asked: the reason, and when to come back. Pure."""

from __future__ import annotations

from wire.errors import PeerError
from wire.messages import read_json_object

MAX_REASON = 200  # characters that are shown of it


def stated_reason(body: str) -> str | None:
    """Of `{"error": {"message": ...}}` as OpenAI has it, or `{"detail": ...}` as FastAPI does; None of neither."""
    try:
        found = read_json_object(body)
    except PeerError:
        return None
    error = found.get("error")
    reason = error.get("message") if isinstance(error, dict) else found.get("detail")
    return reason[:MAX_REASON] if isinstance(reason, str) and reason else None


def retry_after_s(header: str | None) -> float | None:
    """RFC 9110, 10.2.3, in its form in seconds; fractions, which servers send, too."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e6 else None
