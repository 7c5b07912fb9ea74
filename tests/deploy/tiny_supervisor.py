"""A supervisor in a process of its own: `python -m tests.deploy.tiny_supervisor FOLDER NAME=PORT[=BEHAVIOUR]...`.

Prints "ready" when all are. Exit code 1 and the reason on stderr when one cannot be started.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from deploy.errors import StartError
from deploy.supervisor import Stop, Supervisor
from tests.deploy.test_supervisor import spec


async def main() -> int:
    folder = Path(sys.argv[1])
    parts = [argument.split("=") for argument in sys.argv[2:]]
    specs = [spec(folder, name, int(port), "".join(behaviour)) for name, port, *behaviour in parts]

    def ready() -> None:
        sys.stdout.write("ready\n")
        sys.stdout.flush()

    stop = Stop()
    with stop.on_signals():
        try:
            await Supervisor(specs, folder / "logs", on_ready=ready).run(stop)
        except StartError as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0


sys.exit(asyncio.run(main()))
