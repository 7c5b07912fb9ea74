"""`python leash.py PARENT_PID COMMAND...`: become COMMAND, and be killed by the kernel when the parent dies.

A supervisor that is killed with SIGKILL can end nobody; the kernel still can (prctl(2), PR_SET_PDEATHSIG; Linux only).
The setting survives exec. It is made here, in the child, because code between fork and exec of a threaded parent may
deadlock. Run as a file, without the packages around it, to cost some 20 ms.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it died before the setting held
        sys.exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
