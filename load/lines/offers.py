"""How a line over WebRTC hands its offer to a server over HTTP, and what it says when that fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from load.lines.boundary import CONNECT_TIMEOUT_S, NoCall, Refused, is_here, refused, unreachable
from wire.errors import PeerError
from wire.messages import read_json_object

NO_ROOM = (429, 503)  # RFC 6585, 4; RFC 9110, 15.6.4


@dataclass(frozen=True)
class Answer:
    status: int
    body: str
    retry_after_s: float | None


async def post_offer(
    url: str, body: str, content_type: str, key: str | None, path: str, query: Mapping[str, str] | None = None
) -> Answer:
    """The answer of a server that takes calls at all. `path`: where these calls are taken. Raises: NoCall."""
    headers = {"content-type": content_type, **({"authorization": f"Bearer {key}"} if key is not None else {})}
    timeout = aiohttp.ClientTimeout(total=CONNECT_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=not is_here(url)) as http,
            http.post(url, data=body, params=query, headers=headers) as response,
        ):
            if response.status in (401, 404, 405):
                raise refused(url, response.status, path)
            return Answer(response.status, await response.text(), _seconds(response.headers.get("retry-after")))
    except aiohttp.InvalidURL:
        raise NoCall(f"{url} is no address", f"it looks like http://127.0.0.1:8080{path}") from None
    except UnicodeDecodeError:
        raise NoCall(f"{url} answered with what is no text") from None
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise unreachable(url, error) from None


def refusal(answer: Answer) -> NoCall:
    """The reason is taken from `{"error": {"message": ...}}`, or `{"detail": ...}` as FastAPI has it."""
    problem = f"the server refused the call: {_reason(answer)}"
    hint = f"try again in {answer.retry_after_s:g} s" if answer.retry_after_s is not None else ""
    return Refused(problem, hint, answer.retry_after_s) if answer.status in NO_ROOM else NoCall(problem, hint)


def _reason(answer: Answer) -> str:
    try:
        body = read_json_object(answer.body)
    except PeerError:
        return f"HTTP {answer.status}"
    error = body.get("error")
    reason = error.get("message") if isinstance(error, dict) else body.get("detail")
    return reason if isinstance(reason, str) else f"HTTP {answer.status}"


def _seconds(retry_after: str | None) -> float | None:
    """None for a date (RFC 9110, 10.2.3), too."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
