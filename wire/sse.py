"""Server-sent events as OpenAI's API uses them: `data:` lines only, an empty line ends an event, `[DONE]` the stream.

Source: WHATWG HTML, 9.2.6. Events with several `data:` lines are joined by newlines; other fields are ignored.
"""

from __future__ import annotations

from wire.errors import PeerError

DONE = "[DONE]"
MAX_EVENT_BYTES = 1 << 20


def encode(data: str) -> bytes:
    return b"".join(b"data: " + line.encode() + b"\n" for line in data.split("\n")) + b"\n"


class Decoder:
    """Incremental: bytes in as they come, whole events out."""

    def __init__(self) -> None:
        self._buffer = b""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[str]:
        """Raises: PeerError for an event above `MAX_EVENT_BYTES` or bytes that are not UTF-8."""
        self._buffer += chunk
        if len(self._buffer) + sum(map(len, self._data)) > MAX_EVENT_BYTES:
            raise PeerError(f"event above {MAX_EVENT_BYTES} bytes", code="too_large")
        # A CR at the very end may be half of a CR LF: it waits for the next chunk.
        body, tail = (self._buffer[:-1], b"\r") if self._buffer.endswith(b"\r") else (self._buffer, b"")
        *lines, rest = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._buffer = rest + tail
        events = []
        for line in lines:
            if not line:
                if self._data:
                    events.append("\n".join(self._data))
                self._data = []
            elif line.startswith(b"data:"):
                try:
                    self._data.append(line[5:].removeprefix(b" ").decode())
                except UnicodeDecodeError:
                    raise PeerError("event is not UTF-8", code="bad_stream") from None
        return events
