"""Errors as HTTP answers, in the shape of OpenAI's API, which all our endpoints use."""

from __future__ import annotations

from fastapi.responses import JSONResponse

from wire.errors import Overloaded, WireError


def error_body(message: str, code: str) -> dict[str, object]:
    """An error in the shape of OpenAI's API, which all our HTTP endpoints use."""
    return {"error": {"message": message, "type": code, "code": code, "param": None}}


def error_response(error: WireError) -> JSONResponse:
    headers = {}
    if isinstance(error, Overloaded):
        # RFC 9110, 10.2.3: whole seconds; rounded up, so that nobody comes back too early.
        headers["retry-after"] = str(max(1, -int(-error.retry_after_s // 1)))
    return JSONResponse(error_body(str(error), error.code), status_code=error.http_status, headers=headers)
