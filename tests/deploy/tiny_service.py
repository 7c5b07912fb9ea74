"""A process with a /health, for tests: `python tiny_service.py NAME PORT JOURNAL [BEHAVIOUR]`.

Appends "NAME start PID", "NAME term" and "NAME child PID" to JOURNAL, one write each, so their order is the order of
events. Behaviours: `fail` ends before it is ready; `crash:N` ends after the first answer in its first N lives;
`deaf` ignores SIGTERM; `parent` starts a child that ignores SIGTERM.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import FrameType

NAME, PORT, JOURNAL = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
BEHAVIOUR = sys.argv[4] if len(sys.argv) > 4 else ""


def note(event: str) -> None:
    with JOURNAL.open("a") as journal:
        journal.write(f"{NAME} {event}\n")


def lives() -> int:
    return JOURNAL.read_text().count(f"{NAME} start")


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        kind, _, times = BEHAVIOUR.partition(":")
        if kind == "crash" and lives() <= int(times):
            sys.stdout.write(f"{NAME} is about to crash\n")
            sys.stdout.flush()
            os._exit(3)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class names it)
        pass


def on_term(number: int, frame: FrameType | None) -> None:
    if BEHAVIOUR != "deaf":
        note("term")
        os._exit(0)


signal.signal(signal.SIGTERM, on_term)
note(f"start {os.getpid()}")
if BEHAVIOUR == "fail":
    sys.exit("no such weights: this is the reason")
server = HTTPServer(("127.0.0.1", PORT), Health)
if BEHAVIOUR == "parent":
    deaf = "import signal,time;signal.signal(15,signal.SIG_IGN);print(1,flush=True);time.sleep(600)"
    grandchild = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
    assert grandchild.stdout is not None
    grandchild.stdout.readline()
    note(f"child {grandchild.pid}")
server.serve_forever()
