"""What ends a command of `load`: one line for the user and a hint what to do about it."""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


class LoadError(Exception):
    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


def first_of(group: BaseExceptionGroup[E]) -> E:
    """Of the errors that ended a group of tasks, however deep: one line is enough."""
    first = group.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first
