"""How a line over WebRTC hands its offer to a server over HTTP, and what it says when that fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from load.http_errors import retry_after_s, stated_reason
from load.lines.boundary import CONNECT_TIMEOUT_S, NoCall, Refused, is_here, refused, unreachable

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
            return Answer(response.status, await response.text(), retry_after_s(response.headers.get("retry-after")))
    except aiohttp.InvalidURL:
        raise NoCall(f"{url} is no address", f"it looks like http://127.0.0.1:8080{path}") from None
    except UnicodeDecodeError:
        raise NoCall(f"{url} answered with what is no text") from None
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise unreachable(url, error) from None


def refusal(answer: Answer) -> NoCall:
    problem = f"the server refused the call: {stated_reason(answer.body) or f'HTTP {answer.status}'}"
    hint = f"try again in {answer.retry_after_s:g} s" if answer.retry_after_s is not None else ""
    return Refused(problem, hint, answer.retry_after_s) if answer.status in NO_ROOM else NoCall(problem, hint)
