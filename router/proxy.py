"""One routed request: choose a worker, relay its answer byte for byte, abort it when the client goes.

A request moves to another worker only before the first byte of an answer: after that the client has seen text that a
second attempt would contradict. While a healthy worker is left to ask, one that says nothing gets half of the time.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from fastapi import Request, Response

from router import metrics
from router.choice import Sessions, order
from router.config import RouterConfig
from router.workers import Pool, Worker
from wire import sse
from wire.errors import DeadlineExceeded, Overloaded, PeerError, Unavailable, WireError
from wire.replies import error_body
from wire.request import RequestContext, from_headers
from wire.service import Lifecycle, read_json
from wire.streaming import Outgoing, Streamed
from wire.strict import nearest

logger = logging.getLogger(__name__)

REQUEST_ID_HEADER = "x-request-id"
WORKER_HEADER = "x-offhook-worker"
MAX_BODY_BYTES = 4 << 20
_PASSED_BACK = ("content-type", "retry-after")
_NOT_HERE = (502, 503, Overloaded.http_status)  # this worker cannot serve it now, another may


@dataclass(frozen=True)
class _Routed:
    path: str
    pool: Pool
    body: dict[str, Any]
    context: RequestContext
    request_id: str


class Proxy:
    def __init__(self, pools: Mapping[str, Pool], config: RouterConfig, lifecycle: Lifecycle) -> None:
        self._pools = pools
        self._sessions = Sessions()
        self._config = config
        self._lifecycle = lifecycle
        self.http: aiohttp.ClientSession | None = None  # set while the router serves

    async def answer(self, request: Request) -> Response:
        """Raises: PeerError."""
        received_s = time.monotonic()
        context = from_headers(request.headers, received_s)
        body = await read_json(request, MAX_BODY_BYTES)
        pool = self._pool(body.get("model"))
        request_id = request.headers.get(REQUEST_ID_HEADER) or uuid.uuid4().hex
        routed = _Routed(request.url.path, pool, body, context, request_id)

        async def produce(outgoing: Outgoing) -> None:
            outcome = "failed"
            try:
                with self._lifecycle.unit():
                    await self._relay(routed, outgoing, received_s)
                outcome = "served"
            except asyncio.CancelledError:
                outcome = "aborted"
                raise
            finally:
                metrics.REQUESTS.labels(pool.model, outcome).inc()
                metrics.REQUEST.labels(pool.model).observe(time.monotonic() - received_s)

        return Streamed(produce)

    def _pool(self, model: object) -> Pool:
        if not isinstance(model, str):
            raise PeerError("model: missing or not a string")
        if model not in self._pools:
            close = nearest(model, self._pools)
            hint = f"did you mean '{close}'?" if close else f"known: {', '.join(self._pools)}"
            raise PeerError(f"model '{model:.60}' is not served here; {hint}", code="model_not_found", http_status=404)
        return self._pools[model]

    async def _relay(self, routed: _Routed, outgoing: Outgoing, received_s: float) -> None:
        """Raises: WireError; but a stream that has begun ends with an error event."""
        workers = routed.pool.workers
        names = order([worker.load for worker in workers.values()], self._sessions.get(routed.context.call))
        failure: WireError = Unavailable(f"no worker of '{routed.pool.model}' can be reached")
        for i, name in enumerate(names):
            worker = workers[name]
            worker.num_active += 1
            try:
                rest = [workers[other] for other in names[i + 1 :]]
                if await self._try(worker, routed, outgoing, received_s, rest):
                    self._sessions.note(routed.context.call, name)
                    return
            except (aiohttp.ClientError, OSError) as error:
                why = str(error) or type(error).__name__
                worker.note(is_healthy=False, why=why)
                failure = Unavailable(f"worker {name}: {why}")
                if outgoing.started:
                    break
            except DeadlineExceeded as error:
                failure = error
                break
            finally:
                worker.num_active -= 1
            metrics.RETRIES.labels(routed.pool.model).inc(i + 1 < len(names))
        if not outgoing.started or routed.body.get("stream") is not True:
            raise failure
        logger.warning("x %s: %s", routed.request_id, failure)
        # The worker may have been lost inside an event: an empty line ends that one.
        await outgoing.write(b"\n\n" + sse.encode(json.dumps(error_body(str(failure), failure.code))))

    async def _try(
        self, worker: Worker, routed: _Routed, outgoing: Outgoing, received_s: float, rest: Sequence[Worker]
    ) -> bool:
        """Relay this worker's answer; False, before the first byte, when one of the `rest` should be asked."""
        assert self.http is not None
        now = time.monotonic()
        wait_s = min(self._config.first_byte_timeout_s, routed.context.left_s(now))
        headers = {**worker.headers(), **routed.context.headers(now), REQUEST_ID_HEADER: routed.request_id}
        body = {**routed.body, "model": worker.model}
        if wait_s <= 0:
            raise DeadlineExceeded("the deadline has passed")
        has_heir = any(other.is_healthy for other in rest)
        if has_heir:
            wait_s /= 2
        try:
            async with asyncio.timeout(wait_s) as timeout:
                async with self.http.post(f"{worker.url}{routed.path}", json=body, headers=headers) as response:
                    if response.status in _NOT_HERE and rest:
                        return False
                    # The first chunk before the status line: a worker that dies in between can still be replaced.
                    chunk = await response.content.readany()
                    if response.status not in _NOT_HERE:
                        worker.note(is_healthy=True)
                    passed = [(name, response.headers[name]) for name in _PASSED_BACK if name in response.headers]
                    ours = [(REQUEST_ID_HEADER, routed.request_id), (WORKER_HEADER, worker.url)]
                    await outgoing.start(response.status, [*passed, *ours])
                    metrics.FIRST_BYTE.labels(routed.pool.model).observe(time.monotonic() - received_s)
                    while chunk:
                        timeout.reschedule(None)
                        await outgoing.write(chunk)
                        timeout.reschedule(asyncio.get_running_loop().time() + self._config.idle_timeout_s)
                        chunk = await response.content.readany()
        except TimeoutError:
            if has_heir and not outgoing.started:
                logger.warning("x %s: worker %s was silent for %.1f s", routed.request_id, worker.url, wait_s)
                return False
            silent_s = self._config.idle_timeout_s if outgoing.started else wait_s
            raise DeadlineExceeded(f"worker {worker.url} was silent for {silent_s:.1f} s") from None
        return True
