"""Text of servers, callers and files as it may go to a terminal. Pure."""

from __future__ import annotations

from wire.strict import is_clean


def harmless(text: str) -> str:
    """Control characters, which steer a terminal, as escapes; lines stay lines."""
    if is_clean(text):
        return text
    return "".join(char if char == "\n" or is_clean(char) else ascii(char)[1:-1] for char in text)
