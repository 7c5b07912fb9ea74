"""What ends a command: one line for the user and a hint what to do about it.

    DeployError
    ├── NoProfile      there is no such file
    ├── FetchError     weights cannot be brought here
    ├── StartError     a process cannot be started, or ended for good
    └── CallError      the test call cannot be made

`wire.config.ConfigError`, for the profile and the catalogue, is a line by itself.
"""

from __future__ import annotations


class DeployError(Exception):
    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


class NoProfile(DeployError):
    pass


class FetchError(DeployError):
    pass


class StartError(DeployError):
    """`log_tail` holds the last lines of the process's log."""

    def __init__(self, problem: str, hint: str = "", log_tail: tuple[str, ...] = ()) -> None:
        super().__init__(problem, hint)
        self.log_tail = log_tail


class CallError(DeployError):
    pass
