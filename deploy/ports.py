"""Is a port free, and if not, who has it? The owner is looked up in /proc (Linux; proc(5): net/tcp, PID/fd)."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from deploy.errors import StartError

TCP_LISTEN = "0A"  # include/net/tcp_states.h


def require_free(addresses: Iterable[tuple[str, str, int]]) -> None:
    """`addresses`: what listens there, host, port.

    Raises: StartError for the first that is taken, with its owner's pid and command.
    """
    for name, host, port in addresses:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            socket.create_server((host, port), family=family).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise StartError(f"{name} cannot listen on {host}:{port}: {error.strerror or error}") from None
            owner = owner_of(port)
            who = f"process {owner[0]} ({owner[1]})" if owner else "another process"
            raise StartError(
                f"port {port}, which {name} needs, is taken by {who}",
                f"end it, or change {name}'s edge.port in the profile",
            ) from None


def owner_of(port: int) -> tuple[int, str] | None:
    """Pid and command line of the process that listens on `port`; None when it cannot be seen from here."""
    wanted = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(entry) in wanted for entry in (folder / "fd").iterdir()):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                return int(folder.name), command
        except OSError:  # another user's process, or one that ended meanwhile
            continue
    return None


def _listening_inodes(port: int) -> set[str]:
    inodes = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == TCP_LISTEN and int(columns[1].rpartition(":")[2], 16) == port:
                inodes.add(columns[9])
    return inodes
