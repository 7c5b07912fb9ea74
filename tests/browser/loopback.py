"""A network namespace with nothing but 127.0.0.1: what runs inside cannot reach anybody else, whatever it tries.

Run as a program, this file brings the namespace's loopback up, says so, and holds the namespace until its standard
input ends, which is when the tests do.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914  # linux/sockios.h
IFF_UP = 1  # linux/if.h
UP = "up\n"
WAYS = (("--net",), ("--user", "--map-root-user", "--net"))  # as root; as anybody, where the kernel lets them


class NoNamespace(Exception):
    """Why there can be none."""


class Loopback:
    def __init__(self, pid: int, *, has_user_namespace: bool) -> None:
        user = ("--user", "--preserve-credentials") if has_user_namespace else ()
        self._enter = ("nsenter", "--target", str(pid), *user, "--net", "--")

    def inside(self, *command: str) -> tuple[str, ...]:
        return (*self._enter, *command)


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Raises: NoNamespace."""
    problems = []
    for way in WAYS:
        try:
            holder = subprocess.Popen(
                ["unshare", *way, sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        except OSError as error:
            raise NoNamespace(f"unshare: {error}") from None
        with holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            assert holder.stderr is not None
            if holder.stdout.readline() == UP:
                try:
                    yield Loopback(holder.pid, has_user_namespace="--user" in way)
                finally:
                    holder.stdin.close()
                    holder.wait(10)
                return
            problems.append(holder.stderr.read().strip())
    raise NoNamespace("; ".join(problems))


def _hold() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        name = struct.pack("16sH", b"lo", 0)
        [flags] = struct.unpack_from("H", fcntl.ioctl(sock, SIOCGIFFLAGS, name), 16)
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH", b"lo", flags | IFF_UP))
    os.write(1, UP.encode())
    sys.stdin.read()


if __name__ == "__main__":
    _hold()
