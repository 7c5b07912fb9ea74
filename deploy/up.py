"""`offhook up`: weights, ports, processes, in this order, each with a clear end when it fails."""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
import time
from pathlib import Path

from deploy.paths import offhook
from deploy.ports import reachable_host, require_free
from deploy.profile import Profile, specs
from deploy.supervisor import Stop, Supervisor

logger = logging.getLogger(__name__)


def up(profile: Profile, path: Path, logs: Path) -> None:
    """Run until a signal; everything has ended when it returns.

    Raises: StartError.
    """
    require_free((name, edge.host, edge.port) for name, _, edge in profile.edges)
    started_s = time.monotonic()
    logger.info("logs: %s", logs)
    if sys.platform != "linux":
        logger.warning("not Linux: should this process be killed with SIGKILL, those it started live on")

    def announce() -> None:
        logger.info("ready after %.1f s; Ctrl-C ends it", time.monotonic() - started_s)
        sys.stdout.write(address_line(profile) + "\n")
        sys.stdout.flush()

    asyncio.run(_supervise(Supervisor(specs(profile, path), logs, on_ready=announce)))
    logger.info("everything has ended")


async def _supervise(supervisor: Supervisor) -> None:
    stop = Stop()
    with stop.on_signals():
        await supervisor.run(stop)


def address_line(profile: Profile) -> str:
    """The one line for stdout: the page, which is the base of all addresses, and how to call from a terminal."""
    if profile.voice is None:
        _, _, edge = profile.edges[0]
        return f"http://{reachable_host(edge.host)}:{edge.port}/"
    edge = profile.voice.edge
    address = f"{reachable_host(edge.host)}:{edge.port}"
    key = f" --key-file {shlex.quote(str(edge.api_key_file))}" if edge.api_key_file is not None else ""
    return f"http://{address}/   call it: {offhook()} call --wav FILE --url ws://{address}/v1/calls{key}"
