"""Is a port free, and if not, who has it? The owner is looked up in /proc (Linux; proc(5): net/tcp, PID/fd, PID/stat).

A port that one of our own processes has is told by the `offhook up` that started it: its parent, or a parent of that.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.errors import StartError
from deploy.paths import DEFAULT_PROFILE

TCP_LISTEN = "0A"  # include/net/tcp_states.h
MAX_COMMAND = 200  # characters shown of a command line


@dataclass(frozen=True)
class Up:
    """A running `offhook up`."""

    pid: int
    profile: Path


@dataclass(frozen=True)
class Owner:
    pid: int
    command: str
    up: Up | None = None  # that started it

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})"


def require_free(addresses: Iterable[tuple[str, str, int]]) -> None:
    """`addresses`: what listens there, host, port.

    Raises: StartError for the first that is taken, with its owner.
    """
    for name, host, port in addresses:
        error = bind_error(host, port)
        if error is None:
            continue
        if error.errno != errno.EADDRINUSE:
            raise StartError(f"{name} cannot listen on {host}:{port}: {error.strerror or error}")
        owner = owner_of(port)
        if owner is not None and owner.up is not None:
            raise StartError(
                f"offhook up is already running (pid {owner.up.pid}), profile {owner.up.profile}: "
                f"port {port}, which {name} needs, is its own",
                f"Ctrl-C there or `kill {owner.up.pid}` ends it; beside it another profile needs other ports",
            )
        raise StartError(
            f"port {port}, which {name} needs, is taken by {owner or 'another process'}",
            f"end it, or change {name}'s edge.port in the profile",
        )


def bind_error(host: str, port: int) -> OSError | None:
    """Why nobody can listen there now; None when somebody can."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        return error
    except UnicodeError:  # of a name with an empty or endless label
        return OSError(errno.EINVAL, "no address")
    return None


def reachable_host(host: str) -> str:
    """Where a client on this machine reaches a server bound to `host`, as it stands in a URL."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host


def owner_of(port: int) -> Owner | None:
    """The process that listens on `port`; None when it cannot be seen from here."""
    wanted = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(entry) in wanted for entry in (folder / "fd").iterdir()):
                pid = int(folder.name)
                return Owner(pid, " ".join(_arguments(pid))[:MAX_COMMAND], _up_above(pid))
        except OSError:  # another user's process, or one that ended meanwhile
            continue
    return None


def profile_of_up(arguments: Sequence[str]) -> str | None:
    """The profile of a command line that is `offhook up` or `python -m deploy up`; None for any other."""
    for i, argument in enumerate(arguments[:-1]):
        is_ours = Path(argument).name == "offhook" or (argument == "deploy" and arguments[i - 1] == "-m")
        if not is_ours or arguments[i + 1] != "up":
            continue
        options = arguments[i + 2 :]
        for j, option in enumerate(options):
            name, has_value, value = option.partition("=")
            if len(name) > len("--") and "--profile".startswith(name):  # argparse takes any beginning of it
                return value if has_value else (options[j + 1] if j + 1 < len(options) else "")
        return str(DEFAULT_PROFILE)
    return None


def _up_above(pid: int) -> Up | None:
    try:
        while pid > 1:
            profile = profile_of_up(_arguments(pid))
            if profile is not None:
                return Up(pid, (Path(os.readlink(f"/proc/{pid}/cwd")) / profile).resolve())
            pid = _parent(pid)
    except OSError:  # another user's process, or one that ended meanwhile
        return None
    return None


def _arguments(pid: int) -> list[str]:
    text = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return text.rstrip("\0").split("\0")


def _parent(pid: int) -> int:
    # "PID (NAME) STATE PPID ...": a name may hold spaces and parentheses.
    return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])


def _listening_inodes(port: int) -> set[str]:
    inodes = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:  # no IPv6, or no /proc
            continue
        for line in lines:
            columns = line.split()
            if columns[3] == TCP_LISTEN and int(columns[1].rpartition(":")[2], 16) == port:
                inodes.add(columns[9])
    return inodes
