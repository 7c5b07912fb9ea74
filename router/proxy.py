"""One routed request: choose a worker, relay its answer byte for byte, abort it when the client goes.

A request moves to another worker only before the first byte of an answer: after that the client has seen text that a
second attempt would contradict. Raw ASGI, because a framework's streaming response notices a vanished client only when
it sends, and a worker that is still prefilling sends nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Mapping
from typing import Any

import aiohttp
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from router import metrics
from router.choice import Sessions, order
from router.config import RouterConfig
from router.workers import Pool, Worker
from wire import sse
from wire.errors import DeadlineExceeded, Overloaded, PeerError, Unavailable, WireError
from wire.request import RequestContext, from_headers
from wire.service import Lifecycle, error_body, error_response, read_json
from wire.strict import nearest

logger = logging.getLogger(__name__)

REQUEST_ID_HEADER = "x-request-id"
WORKER_HEADER = "x-offhook-worker"
MAX_BODY_BYTES = 4 << 20
_PASSED_BACK = ("content-type", "retry-after", REQUEST_ID_HEADER)
_NOT_HERE = (502, 503)  # this worker cannot, another may


class Proxy:
    """An ASGI application for one path of OpenAI's API."""

    def __init__(
        self, path: str, pools: Mapping[str, Pool], sessions: Sessions, config: RouterConfig, lifecycle: Lifecycle
    ) -> None:
        self._path = path
        self._pools = pools
        self._sessions = sessions
        self._config = config
        self._lifecycle = lifecycle
        self.http: aiohttp.ClientSession | None = None  # set while the router serves

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        try:
            with self._lifecycle.unit():
                await self._serve(Request(scope, receive), answer)
        except ClientDisconnect:
            return
        except WireError as error:
            await answer.fail(error)
        except Exception:  # one routed request: logged once, the process lives
            logger.exception("request failed")
            await answer.fail(WireError("the router failed"))

    async def _serve(self, request: Request, answer: _Answer) -> None:
        received_s = time.monotonic()
        context = from_headers(request.headers, received_s)
        body = await read_json(request, MAX_BODY_BYTES)
        pool = self._pool(body.get("model"))
        request_id = request.headers.get(REQUEST_ID_HEADER) or uuid.uuid4().hex
        answer.headers[REQUEST_ID_HEADER] = request_id
        relay = asyncio.ensure_future(self._relay(pool, body, context, request_id, answer))
        gone = asyncio.ensure_future(_disconnected(request.receive))
        try:
            await asyncio.wait((relay, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            relay.cancel()
            gone.cancel()
            await asyncio.wait((relay, gone))
        outcome = "aborted" if relay.cancelled() else "failed" if relay.exception() else "served"
        metrics.REQUESTS.labels(pool.model, outcome).inc()
        metrics.REQUEST.labels(pool.model).observe(time.monotonic() - received_s)
        if answer.first_byte_s is not None:
            metrics.FIRST_BYTE.labels(pool.model).observe(answer.first_byte_s - received_s)
        if not relay.cancelled():
            relay.result()

    def _pool(self, model: object) -> Pool:
        if not isinstance(model, str):
            raise PeerError("model: missing or not a string")
        if model not in self._pools:
            close = nearest(model, self._pools)
            hint = f"did you mean '{close}'?" if close else f"known: {', '.join(self._pools)}"
            raise PeerError(f"model '{model:.60}' is not served here; {hint}", code="model_not_found", http_status=404)
        return self._pools[model]

    async def _relay(
        self, pool: Pool, body: dict[str, Any], context: RequestContext, request_id: str, answer: _Answer
    ) -> None:
        names = order([worker.load for worker in pool.workers.values()], self._sessions.get(context.call))
        failure: WireError = Unavailable(f"no worker of '{pool.model}' can be reached")
        for i, name in enumerate(names):
            worker = pool.workers[name]
            if i:
                metrics.RETRIES.labels(pool.model).inc()
            worker.num_active += 1
            try:
                if await self._try(worker, body, context, request_id, answer, is_last=i == len(names) - 1):
                    self._sessions.note(context.call, name)
                    return
                failure = Unavailable(f"worker {name} refused the request")
            except (aiohttp.ClientError, OSError) as error:
                worker.note(is_healthy=False, why=str(error) or type(error).__name__)
                if answer.first_byte_s is not None:
                    raise Unavailable(f"the worker was lost: {error}") from None
                failure = Unavailable(f"worker {name}: {error}")
            finally:
                worker.num_active -= 1
        raise failure

    async def _try(
        self,
        worker: Worker,
        body: dict[str, Any],
        context: RequestContext,
        request_id: str,
        answer: _Answer,
        *,
        is_last: bool,
    ) -> bool:
        """Relay this worker's answer; False, before the first byte, when another should be asked."""
        assert self.http is not None
        now = time.monotonic()
        if context.left_s(now) <= 0:
            raise DeadlineExceeded("the deadline has passed")
        wait_s = min(self._config.first_byte_timeout_s, context.left_s(now))
        headers = {**worker.headers(), **context.headers(now), REQUEST_ID_HEADER: request_id}
        try:
            async with asyncio.timeout(wait_s) as timeout:
                post = self.http.post(
                    f"{worker.url}{self._path}", json={**body, "model": worker.model}, headers=headers
                )
                async with post as response:
                    can_move = not is_last
                    if can_move and response.status in (*_NOT_HERE, Overloaded.http_status):
                        return False
                    # The first chunk before the status line: a worker that dies in between can still be replaced.
                    chunk = await response.content.readany()
                    timeout.reschedule(None)
                    await answer.start(response.status, _passed_back(response), worker.url)
                    while chunk:
                        await answer.send(chunk)
                        async with asyncio.timeout(self._config.idle_timeout_s):
                            chunk = await response.content.readany()
                    await answer.end()
        except TimeoutError:
            raise DeadlineExceeded(f"worker {worker.url} took longer than {wait_s:.1f} s") from None
        return True


class _Answer:
    """What goes back to the client: knows whether it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.headers: dict[str, str] = {}
        self.first_byte_s: float | None = None
        self._is_stream = False

    async def start(self, status: int, headers: dict[str, str], worker: str) -> None:
        self._is_stream = headers.get("content-type", "").startswith("text/event-stream")
        everything = {**self.headers, **headers, WORKER_HEADER: worker}
        raw = [(name.encode(), value.encode("latin-1")) for name, value in everything.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})
        self.first_byte_s = time.monotonic()

    async def send(self, chunk: bytes) -> None:
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    async def fail(self, error: WireError) -> None:
        """Before the first byte an error response, in a stream an error event; a cut body otherwise."""
        if self.first_byte_s is None:
            response = error_response(error)
            response.headers.update(self.headers)
            await response({"type": "http"}, _nothing, self._send)
        elif self._is_stream:
            await self.send(sse.encode(json.dumps(error_body(str(error), error.code))))
            await self.end()
        else:
            raise error


def _passed_back(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name: response.headers[name] for name in _PASSED_BACK if name in response.headers}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _nothing() -> dict[str, Any]:
    raise AssertionError("an error response reads nothing")
