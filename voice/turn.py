"""The turn machine: one table, no clock, no I/O.

Everything that decides whose turn it is stands in this file. `Call` feeds events and carries out the action that
each transition names. A pair that is not in the table is a bug of the caller of `step`, except for the two kinds
named in `IGNORED`: events that a concurrent transition has overtaken.

    LISTENING  nobody speaks
    HEARING    the caller speaks or presses keys, or pauses within the turn
    THINKING   the caller's turn is over, nothing of the answer is heard yet
    SPEAKING   the agent speaks
    CLOSING    the call ends; final
"""

from __future__ import annotations

from enum import Enum, auto


class State(Enum):
    LISTENING = "listening"
    HEARING = "hearing"
    THINKING = "thinking"
    SPEAKING = "speaking"
    CLOSING = "closing"


class Event(Enum):
    SPEECH = auto()  # the caller begins or goes on
    KEY = auto()  # the caller presses a key, the first of a number: he has the turn, whoever had it
    NOISE = auto()  # what began was too short to be speech
    END_OF_TURN = auto()
    NO_WORDS = auto()  # the transcript of the turn is empty
    AUDIO = auto()  # first audio of what the agent says is there
    SAID = auto()  # all of it was played
    BARGE_IN = auto()  # the caller takes the turn from the speaking agent
    PROMPT = auto()  # the agent speaks on its own: greeting, idle prompt, goodbye
    FAILED = auto()  # a stage failed, or the deadline passed: nothing more of the answer comes
    HANG_UP = auto()


class Action(Enum):
    OPEN = auto()  # a new turn begins
    GO_ON = auto()  # the same turn goes on, with more than was known
    REOPEN = auto()  # the same turn goes on: withdraw the answer nobody heard
    DROP = auto()  # forget the turn, nothing happened
    ANSWER = auto()  # get the final transcript and an answer to it
    PLAY = auto()
    CLOSE = auto()  # the answer was heard to its end
    INTERRUPT = auto()  # stop speaking, remember what was heard, a new turn begins
    SAY = auto()
    APOLOGISE = auto()
    END = auto()


TRANSITIONS: dict[tuple[State, Event], tuple[State, Action]] = {
    (State.LISTENING, Event.SPEECH): (State.HEARING, Action.OPEN),
    (State.LISTENING, Event.KEY): (State.HEARING, Action.OPEN),
    (State.LISTENING, Event.PROMPT): (State.SPEAKING, Action.SAY),
    (State.LISTENING, Event.HANG_UP): (State.CLOSING, Action.END),
    (State.HEARING, Event.KEY): (State.HEARING, Action.GO_ON),
    (State.HEARING, Event.NOISE): (State.LISTENING, Action.DROP),
    (State.HEARING, Event.END_OF_TURN): (State.THINKING, Action.ANSWER),
    (State.HEARING, Event.HANG_UP): (State.CLOSING, Action.END),
    (State.THINKING, Event.SPEECH): (State.HEARING, Action.REOPEN),
    (State.THINKING, Event.KEY): (State.HEARING, Action.REOPEN),
    (State.THINKING, Event.NO_WORDS): (State.LISTENING, Action.DROP),
    (State.THINKING, Event.AUDIO): (State.SPEAKING, Action.PLAY),
    (State.THINKING, Event.FAILED): (State.SPEAKING, Action.APOLOGISE),
    (State.THINKING, Event.HANG_UP): (State.CLOSING, Action.END),
    (State.SPEAKING, Event.SAID): (State.LISTENING, Action.CLOSE),
    (State.SPEAKING, Event.FAILED): (State.SPEAKING, Action.APOLOGISE),
    (State.SPEAKING, Event.BARGE_IN): (State.HEARING, Action.INTERRUPT),
    (State.SPEAKING, Event.KEY): (State.HEARING, Action.INTERRUPT),
    (State.SPEAKING, Event.HANG_UP): (State.CLOSING, Action.END),
}

IGNORED = frozenset({(State.CLOSING, event) for event in Event})


class Turn:
    """Whose turn it is. `number` counts the caller's turns from 1; 0 before the first."""

    def __init__(self) -> None:
        self.state = State.LISTENING
        self.number = 0

    def allows(self, event: Event) -> bool:
        return (self.state, event) in TRANSITIONS

    def step(self, event: Event) -> Action | None:
        """Move on `event` and say what to do; None where a closing call ignores it.

        Raises: AssertionError for a pair the table does not have.
        """
        if (self.state, event) in IGNORED:
            return None
        assert (self.state, event) in TRANSITIONS, f"{event} in {self.state}"
        self.state, action = TRANSITIONS[self.state, event]
        if action in (Action.OPEN, Action.INTERRUPT):
            self.number += 1
        return action
