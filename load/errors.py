"""What ends a command of `load`: one line for the user and a hint what to do about it."""

from __future__ import annotations


class LoadError(Exception):
    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint
